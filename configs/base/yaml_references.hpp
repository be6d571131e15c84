// "${a.b}" in the texts of a YAML file: the value of key b in map a of the same file, as OmegaConf reads it in recipes
// of LLM Foundry. Keys under `variables` are free.
#pragma once
#include <yaml-cpp/yaml.h>

#include <string>

namespace wt {

/// Replaces every reference under `root` in place. A text that is a single reference becomes a copy of the value, of
/// any kind. Throws Error{usage} with `origin` and the reference: no such value, or circular references.
void fill_in_references(YAML::Node root, const std::string& origin);

}  // namespace wt
