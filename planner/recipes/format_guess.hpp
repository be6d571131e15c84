// Which format a text has, where nobody says so: by its file's ending, and by the words that only that format has.
#pragma once
#include <string>

#include "planner/recipes/recipe.hpp"

namespace wt {

/// Throws Error{usage} for another trainer's file, which it names if it knows it, and for text that is no file at all.
RecipeFormat guessed_format(const std::string& text, const std::string& origin, const RecipeSource& source);

}  // namespace wt
