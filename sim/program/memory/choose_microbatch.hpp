// device_train_microbatch_size: auto. The largest microbatch whose step fits, by the replay of the step program that
// plans and simulations price. Found once before a run starts, never by running out of memory.
#pragma once
#include <string>

namespace wt {

struct RunSpec;

/// Highest tensor memory of a rank in a step of the run, in bytes. Experts are taken to receive twice the balanced
/// rows.
double step_memory(const RunSpec& run);

/// Of the microbatches that divide a rank's sequences into a number that the pipeline's schedule takes, the largest
/// with step_memory <= `bytes`; the run has it afterwards. Nothing happens where the run says a number. Throws
/// Error{usage} "WHERE: device_train_microbatch_size: ..." where not even the smallest fits, or the schedule takes
/// none.
void choose_microbatch(RunSpec& run, double bytes, const std::string& where);

}  // namespace wt
