// Names of the models in configs/models in other frameworks.
#pragma once
#include <string>

#include "configs/files/model.hpp"

namespace wt {

struct ModelNames {
  const char* preset;        ///< file name in configs/models
  const char* torchtitan;    ///< "name/flavor", or nullptr
  const char* bridge;        ///< pretraining recipe of Megatron-Bridge, or nullptr
  const char* hugging_face;  ///< repository
};
/// Looks up the model's name and compares its shape; nullptr if no preset has both.
const ModelNames* names_of(const ModelSpec& model);
/// The preset with this name in one framework; "" if unknown. The owner of a repository is optional.
std::string preset_named(const char* ModelNames::*kind, const std::string& name);

}  // namespace wt
