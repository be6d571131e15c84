// How reports name classes of ops.
#pragma once
#include <string>

#include "sim/cost/kernels/machine_data.hpp"

namespace wt {

/// "attention (dense), backward"
std::string op_name(const OpKey& key);

}  // namespace wt
