// What a run with adapters may be.
#pragma once
#include <string>

namespace wt {

struct RunSpec;

/// Throws Error{usage} where the run has a peft_config and something that adapters are not trained with: a model or a
/// target without factors (adapted_modules), tensor parallelism, schedules of pipelines other than 1f1b, recompute of
/// single modules, and further sharding, offloading, formats and optimizers that no adapter needs.
void check_lora(const RunSpec& run, const std::string& where);

}  // namespace wt
