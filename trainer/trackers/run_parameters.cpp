#include "trainer/trackers/run_parameters.hpp"

#include <nlohmann/json.hpp>

#include "configs/base/yaml.hpp"

namespace wt {
namespace {

void flatten(const nlohmann::json& value, const std::string& name,
             std::vector<std::pair<std::string, std::string>>& out) {
  const bool maps = value.is_array() && !value.empty() && value.front().is_object();
  if (value.is_object() || maps)
    for (const auto& [key, below] : value.items()) flatten(below, name.empty() ? key : name + "." + key, out);
  else
    out.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

std::vector<std::pair<std::string, std::string>> run_parameters(const std::string& run_yaml) {
  nlohmann::json run = yaml_to_json(YAML::Load(run_yaml));
  run.erase("loggers");
  std::vector<std::pair<std::string, std::string>> out;
  flatten(run, "", out);
  return out;
}

}  // namespace wt
