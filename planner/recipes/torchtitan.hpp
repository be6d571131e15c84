// The parts of the translator for torchtitan 0.2.2.
#pragma once
#include "planner/recipes/translator.hpp"

namespace wt {

/// Number formats. Those below 16 bits are converters of the model.
void write_titan_formats(RecipeDraft& draft);
/// Needs the model and the layout.
void read_titan_formats(RecipeReading& reading);

}  // namespace wt
