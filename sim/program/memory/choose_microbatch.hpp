// device_train_microbatch_size: auto. The largest microbatch whose step fits, by the memory replay that plans and
// simulations use. Determined once before a run starts, never by running out of memory.
#pragma once
#include <string>

namespace wt {

struct RunSpec;

/// Share of a rank's memory for tensors when the microbatch is chosen, in the trainer and for simulations.
inline constexpr double kForTensors = 0.9;

/// Highest tensor memory of a rank in a step of the run, in bytes. Assumes that experts receive twice the balanced
/// rows.
double step_memory(const RunSpec& run);

/// The run with its microbatch set to the largest one with step_memory <= `bytes`, among those that divide a rank's
/// sequences into a number that the pipeline's schedule supports. A run that gives its microbatch is returned as it is.
/// Throws Error{usage} "WHERE: device_train_microbatch_size: ..." if the smallest does not fit, or the schedule
/// supports none.
[[nodiscard]] RunSpec choose_microbatch(RunSpec run, double bytes, const std::string& where);

}  // namespace wt
