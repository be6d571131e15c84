// Which inputs affect the times of collectives, and which do not: for plans, steps and what-ifs.
#pragma once
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// Sentences on which collectives' times a profile measured, and which keys of the cluster have no effect. For times
/// that rest on profiles of GPUs.
std::vector<std::string> collective_basis(const OpCost& times, const ClusterSpec& cluster);

}  // namespace wt
