#include "configs/files/hub_models.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

struct Shapes {
  nlohmann::json table;                        // by repository, without sources: a config.json has none
  std::map<std::string, std::string> sources;  // by repository
};

const Shapes& shapes() {
  static const Shapes kShapes = [] {
    Shapes all;
    all.table = read_json(configs_folder() / "hub" / "models.json").at("models");
    for (const auto& [repository, entry] : all.table.items())
      if (entry.is_object()) all.sources[repository] = entry.at("source"), entry.erase("source");
    return all;
  }();
  return kShapes;
}

const nlohmann::json& table() { return shapes().table; }

/// In small letters, without suffixes of variants that have the same shape.
std::string plain(const std::string& name) {
  std::string out = lower(name);
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string ending : {"-base", "-instruct", "-chat", "-it", "-pt", "-0924", "-hf", "-thinking", "-bf16"})
      if (out.ends_with(ending)) out.resize(out.size() - ending.size()), shorter = true;
  }
  return out;
}

std::string without_owner(const std::string& repository) { return repository.substr(repository.rfind('/') + 1); }

/// The repository with its shape: itself, or the one that its entry names.
std::string resolved(const std::string& repository) {
  const nlohmann::json& entry = table().at(repository);
  return entry.is_string() ? entry.get<std::string>() : repository;
}

}  // namespace

std::string hub_repository(const std::string& name) {
  if (table().contains(name)) return resolved(name);
  const bool owner = name.find('/') != std::string::npos;
  const std::string wanted = plain(name);
  for (const auto& [repository, entry] : table().items())
    if (plain(owner ? repository : without_owner(repository)) == wanted) return resolved(repository);
  return "";
}

const nlohmann::json& hub_config(const std::string& repository) { return table().at(repository); }

const std::string& hub_source(const std::string& repository) { return shapes().sources.at(repository); }

std::string repository_of(const std::string& preset) {
  for (const auto& [repository, entry] : table().items())
    if (entry.is_object() && entry.value("preset", "") == preset) return repository;
  return "";
}

std::vector<std::string> hub_repositories() {
  std::vector<std::string> out;
  for (const auto& [repository, entry] : table().items()) out.push_back(repository);
  return out;
}

}  // namespace wt
