#include "planner/recipes/bridge_recipes.hpp"

#include "configs/base/text.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

BridgeRecipe recipe_from_json(const nlohmann::json& entry) {
  BridgeRecipe out;
  for (const auto& [key, value] : entry.items())
    if (key == "model")
      out.model = value.is_string() ? value.get<std::string>() : "";
    else if (key == "peft")
      out.adapters = value == true;
    else if (key == "unread")
      out.computed = value.get<std::vector<std::string>>();
    else if (!key.starts_with("peft."))
      out.values.emplace(key, value);
  return out;
}

std::map<std::string, BridgeRecipe> read_recipes() {
  const std::filesystem::path file = configs_folder() / "words" / "megatron-bridge-recipes.json";
  const auto document = nlohmann::json::parse(read_file(file, "the recipes of Megatron-Bridge"), nullptr, false);
  if (!document.is_object() || !document.contains("recipes"))
    throw_usage("{}: found other text, needs a map of recipes; write it with planner/recipes/words/megatron_bridge.py",
                file.string());
  std::map<std::string, BridgeRecipe> out;
  for (const auto& [name, entry] : document.at("recipes").items()) out.emplace(name, recipe_from_json(entry));
  return out;
}

}  // namespace

const std::map<std::string, BridgeRecipe>& bridge_recipes() {
  static const std::map<std::string, BridgeRecipe> all = read_recipes();
  return all;
}

}  // namespace wt
