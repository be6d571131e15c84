// What a run with adapters may be.
#pragma once
#include <string>

namespace wt {

class Recompute;
struct RunSpec;
struct SearchSpec;

/// Throws Error{usage} where the run has a peft_config and something that adapters are not trained with: a model or a
/// target without factors (adapted_modules), tensor parallelism, schedules of pipelines other than 1f1b, recompute of
/// single modules, and further sharding, offloading, formats and optimizers that no adapter needs.
void check_lora(const RunSpec& run, const std::string& where);
/// The same of what a study with a peft_config asks its search for, which tries no pipelines: bounds of their steps are
/// not known to hold where nothing goes back through the embedding.
void check_lora(const SearchSpec& search, const std::string& where);
/// It names no module but blocks.
bool of_whole_blocks(const Recompute& recompute);

}  // namespace wt
