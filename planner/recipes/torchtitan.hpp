// The parts of the translator for torchtitan 0.2.2.
#pragma once
#include <string>

#include "planner/recipes/translator.hpp"

namespace wt {

/// Sets the model of model.name and model.flavor.
void read_titan_model(RecipeReading& reading);
/// Number formats. Those below 16 bits are converters of the model.
void write_titan_formats(RecipeDraft& draft);
/// Needs the model and the layout.
void read_titan_formats(RecipeReading& reading);
void write_titan_pipeline(RecipeDraft& draft);
/// Needs the model, and the degrees of the layout.
void read_titan_pipeline(RecipeReading& reading);
void write_titan_recompute(RecipeDraft& draft);
/// Needs the model and the pipeline.
void read_titan_recompute(RecipeReading& reading);
/// Gives words of earlier releases the names that they have in 0.2.2.
void rename_titan_words(Settings& settings);

}  // namespace wt
