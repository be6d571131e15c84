// Which inputs have a say in the times of collectives, and which have none: for plans, steps and what-ifs alike.
#pragma once
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// What of the collectives' prices a profile measured, and which keys of the cluster change nothing, a sentence each.
/// For prices that rest on profiles of GPUs.
std::vector<std::string> collective_basis(const OpCost& prices, const ClusterSpec& cluster);

}  // namespace wt
