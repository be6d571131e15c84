// What each recipe of Megatron-Bridge 0.3.1 sets: configs/words/megatron-bridge-recipes.json, which
// planner/recipes/words/megatron_bridge.py reads out of the package.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "planner/recipes/settings.hpp"

namespace wt {

struct BridgeRecipe {
  std::string model;                              ///< a repository of Hugging Face, or a class of the package; "": none
  std::map<std::string, Settings::Value> values;  ///< by the key of an override; null where the recipe says None
  bool adapters = false;                          ///< it trains adapters
  std::vector<std::string> computed;              ///< keys that the recipe computes, and that are not in `values`
};
/// By name; read once a process. Throws Error{usage} where the file is missing or broken.
const std::map<std::string, BridgeRecipe>& bridge_recipes();

}  // namespace wt
