// Step timelines as a Chrome trace-event file, for chrome://tracing and Perfetto (both open it offline).
#pragma once
#include <string>
#include <vector>

#include "sim/program/timeline.hpp"

namespace wt {

/// Timelines of one origin: "predicted", "measured".
struct TraceGroup {
  std::string name;
  std::vector<StepTimeline> steps;  ///< any ranks and steps, in any order
};

/// One JSON document. Process = group and rank (pid = rank in the first group, shifted by a power of ten in the next
/// ones, shown beside the same rank of the others), thread = lane, one "X" event an op with ts and dur in microseconds
/// and args id, issued_us, waited_s, rows; a counter track of live memory where it was recorded. An op's bar starts
/// when it was issued or when its lane was free, whichever is later. Steps follow each other; a step starts when the
/// slowest rank has finished the one before.
std::string chrome_trace(const std::vector<TraceGroup>& groups);

/// Start of each op's bar in seconds, by the rule above; as long as timeline.ops.
std::vector<double> op_starts(const StepTimeline& timeline);

}  // namespace wt
