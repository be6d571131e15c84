// Jobs of torchtitan as command lines: a TOML file of 0.2.2, or a job that 0.3.0 ships (models/*/config_registry.py),
// with overrides.
#pragma once
#include <string>

#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {

/// In the words of 0.2.2. Throws Error{usage} for a file that is not there, or a job that is not known, with the
/// nearest one.
Settings settings_of_titan_command(const std::string& text, const std::string& origin, const RecipeSource& source);

}  // namespace wt
