// What other frameworks call the models of configs/models.
#pragma once
#include <string>

#include "configs/files/model.hpp"

namespace wt {

struct ModelNames {
  const char* preset;        ///< of configs/models
  const char* torchtitan;    ///< "name/flavor", or nothing
  const char* bridge;        ///< pretraining recipe of Megatron-Bridge, or nothing
  const char* hugging_face;  ///< repository
};
/// By the model's name, if its shape is the preset's, too; nullptr for another model.
const ModelNames* names_of(const ModelSpec& model);
/// The preset that a name of one kind means; nothing for an unknown name. The owner of a repository may be left out.
std::string preset_named(const char* ModelNames::*kind, const std::string& name);

}  // namespace wt
