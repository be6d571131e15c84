// Names of our models in other frameworks.
#pragma once
#include <string>

#include "configs/files/model.hpp"

namespace wt {

struct ModelNames {
  const char* preset;      ///< file name in configs/models, or a repository of configs/hub
  const char* torchtitan;  ///< "name/flavor", or ""
  const char* bridge;      ///< pretraining recipe of Megatron-Bridge, or ""
};
/// Looks up the model's name and compares its shape; nullptr if no preset has both.
const ModelNames* names_of(const ModelSpec& model);
/// The preset or repository with this name in one framework; "" if unknown.
std::string preset_named(const char* ModelNames::*kind, const std::string& name);
/// The repository of the Hub with this model's name and shape; "" if there is none. hub_models.hpp knows the reverse.
std::string repository_named(const ModelSpec& model);

}  // namespace wt
