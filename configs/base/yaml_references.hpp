// "${a.b}" in the texts of a YAML file, as OmegaConf reads it in recipes of LLM Foundry: the value of key b in map a of
// the same file. Keys under `variables` are free.
#pragma once
#include <yaml-cpp/yaml.h>

#include <string>

namespace wt {

/// Fills in every reference under `root`, in place. A text that is one reference takes the value whole, of whatever
/// kind it is. Throws Error{usage} naming `origin` and the reference where no value is there, or references go in a
/// circle.
void fill_in_references(YAML::Node root, const std::string& origin);

}  // namespace wt
