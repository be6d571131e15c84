// Real faults at named places: the drill asks for one, the trainer passes every place it could happen at.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "configs/spec/fault.hpp"

namespace wt {

/// Arms the fault when it is this rank's; once per process. A restarted rank is not armed: a fault happens once.
void arm_fault(const FaultCase& fault, std::int64_t rank);
/// Kills this process with SIGKILL if the armed fault strikes as this op of this step begins.
void pass_fault_point(std::int64_t step, const std::string& op_id);
/// The share of the shard after which writing the checkpoint of this step must die, if any.
std::optional<double> checkpoint_fault(std::int64_t step);
[[noreturn]] void die_now();

}  // namespace wt
