// YAML of Megatron-LM's own as flags.
#pragma once
#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {

/// MODEL_ARGS, or the sections of --yaml-cfg.
bool is_megatron_yaml(const Settings& settings);
/// The flags that the file stands for. Throws Error{usage} for an entry that is none.
Settings megatron_from_yaml(const Settings& file, const RecipeSource& source);

}  // namespace wt
