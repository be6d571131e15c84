// LLM Foundry 0.22.0's recipes (scripts/train, llmfoundry.utils.config_utils.TrainConfig). Many keys are ours, too,
// with other defaults, so every key is written and every default is theirs when read.
#pragma once
#include "planner/recipes/translator.hpp"

namespace wt {

/// `model`, an mpt_causal_lm. Throws Error{usage} naming all that it has not.
void write_foundry_model(RecipeDraft& draft);
void read_foundry_model(RecipeReading& reading);

/// model.activation_checkpointing_target: modules by LLM Foundry's names, with blocks.
void write_foundry_recompute(RecipeDraft& draft);
void read_foundry_recompute(RecipeReading& reading);

}  // namespace wt
