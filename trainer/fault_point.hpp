// Real faults at named places: the drill asks for one, the trainer passes every place it could happen at.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace wt {

/// Kill this process with SIGKILL when rank `rank` reaches `place` in step `step`. Places are op ids ("mb0.L1.experts.bwd",
/// as the op begins) and "checkpoint" (after `after` of the shard's bytes are written).
struct FaultPoint {
  std::int64_t rank = -1;
  std::int64_t step = -1;
  std::string place;
  double after = 0.5;

  /// "rank=1,step=7,at=mb0.L1.experts.bwd[,after=0.5]"; throws Error{usage}.
  static FaultPoint parse(const std::string& text);
  std::string text() const;
};

/// Armed once per process. A restarted rank is not armed: a fault happens once.
void arm_fault(const FaultPoint& fault, std::int64_t rank);
/// Dies here if this is the place.
void pass_fault_point(std::int64_t step, const std::string& place);
/// The share of the shard after which writing a checkpoint of this step must die, if any.
std::optional<double> checkpoint_fault(std::int64_t step);
[[noreturn]] void die_now();

}  // namespace wt
