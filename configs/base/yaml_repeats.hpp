// YAML of other programs, whose readers take a key that a map has twice.
#pragma once
#include <yaml-cpp/yaml.h>

#include <set>
#include <string>

namespace wt {

/// load_yaml of yaml.hpp, but a map may have a key twice, as PyYAML allows. Whoever goes through the entries of the map
/// finds both, in order, and has to keep the last. `repeats` gets a sentence for each key whose values differ.
YAML::Node load_yaml_with_repeats(const std::string& text, const std::string& origin, std::set<std::string>& repeats);

}  // namespace wt
