// The parts of the translator for NeMo Automodel 0.7.0.
#pragma once
#include <string>
#include <vector>

#include "planner/recipes/translator.hpp"

namespace wt {

inline const char* const kAutomodelLayout = "distributed.";
inline const char* const kAutomodelModel = "model.config.pretrained_model_name_or_path";
extern const std::vector<RecipeRow> kAutomodelRows;
extern const RecipeWords<Dispatcher> kAutomodelDispatchers;
extern const std::vector<RecipeSwitch> kAutomodelSwitches;

bool is_automodel_ddp(const Layout& layout);
/// YAML in which "none" is null, with words of earlier releases under their names of 0.7.0.
Settings parse_automodel(const std::string& text, const std::string& origin, const RecipeSource& source);
/// Throws Error{usage} for recipes other than language models'.
void refuse_other_recipes(Settings& settings);
/// The model by its repository, and what the recipe changes of it.
void read_automodel_model(RecipeReading& reading);
/// The number formats: of weights and state, of products, and of reduced gradients.
void read_automodel_formats(RecipeReading& reading);
/// The adapters of section peft. Needs the model and the layout.
void read_automodel_peft(RecipeReading& reading);
void read_automodel(RecipeReading& reading);

}  // namespace wt
