// Step timelines as a Chrome trace-event file, for chrome://tracing and Perfetto (both open it offline).
#pragma once
#include <string>
#include <vector>

#include "sim/program/timeline.hpp"

namespace wt {

/// Timelines with one origin: "predicted", "measured".
struct TraceGroup {
  std::string name;
  std::vector<StepTimeline> steps;  ///< any ranks and steps, in any order
};

/// One JSON document. A process is a group and rank: pid = rank in the first group, plus a power of ten in later ones,
/// so that viewers show a rank's groups side by side. A thread is a lane. An op is an "X" event with ts and dur in
/// microseconds and args id, issued_us, waited_s, rows. Live memory, where recorded, is a counter track. An op's bar
/// starts when it was issued or when its lane was free, whichever is later. A step starts when the slowest rank has
/// finished the step before.
std::string chrome_trace(const std::vector<TraceGroup>& groups);

/// Start of each op's bar in seconds, by that rule; one value per timeline.ops.
std::vector<double> op_starts(const StepTimeline& timeline);

}  // namespace wt
