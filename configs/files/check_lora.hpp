// Which runs and searches adapters (LoRA) support.
#pragma once
#include <string>

namespace wt {

class Recompute;
struct RunSpec;
struct SearchSpec;

/// Throws Error{usage} where a run has a peft_config and one of: a model or target without factors (adapted_modules),
/// tensor parallelism, a pipeline schedule other than 1f1b, recompute of single modules, optimizer sharding,
/// offloading, or a format or optimizer that adapters do not support.
void check_lora(const RunSpec& run, const std::string& where);
/// The same for a study's search. It also refuses pipelines: the lower bounds of their step time are not established
/// where no gradient reaches the embedding.
void check_lora(const SearchSpec& search, const std::string& where);
/// Whether recompute names blocks only, no single modules.
bool recomputes_whole_blocks(const Recompute& recompute);

}  // namespace wt
