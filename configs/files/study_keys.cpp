#include "configs/files/study_keys.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"
#include "configs/files/hub_models.hpp"
#include "configs/files/model.hpp"
#include "configs/files/study.hpp"

namespace wt {
namespace {

std::string emitted(const YAML::Node& root) {
  YAML::Emitter out;
  out << root;
  return std::string(out.c_str()) + "\n";
}

std::vector<std::string> parts_of(const std::string& key, const std::string& origin) {
  std::stringstream split(key);
  std::vector<std::string> parts;
  for (std::string part; std::getline(split, part, '.');) parts.push_back(part);
  if (parts.empty() || std::ranges::find(parts, "") != parts.end())
    throw_usage("{}: found key '{}', needs dotted study keys such as search.tie", origin, key);
  return parts;
}

/// The file that a study names as its cluster or model; "" where the study contains the map, or names a repository.
std::string named_file(const YAML::Node& root, const std::string& key) {
  const YAML::Node name = root.IsMap() ? root[key] : YAML::Node(YAML::NodeType::Undefined);
  if (!name.IsDefined() || !name.IsScalar()) return "";
  if (key == "cluster") return find_config("clusters", name.Scalar()).string();
  return model_repository(name.Scalar()).empty() ? model_file(name.Scalar()).string() : "";
}

/// Replaces a file's name by its map.
void take_in(YAML::Node root, const std::string& key) {
  if (key == "model" && root.IsMap() && root[key] && root[key].IsScalar())
    if (const std::string repository = model_repository(root[key].Scalar()); !repository.empty()) {
      const nlohmann::json& config = hub_config(repository);
      if (!config.contains("preset")) {
        root[key] = load_yaml(config.dump(), repository);  // JSON is YAML
        return;
      }
      root[key] = config.at("preset").get<std::string>();
    }
  const std::string file = named_file(root, key);
  if (!file.empty()) root[key] = load_yaml(read_file(file, "a file of keys"), file);
}

/// Refuses a key that other keys of the study override.
void check_effect(const YAML::Node& root, const std::string& key, const std::string& origin) {
  const auto refuse = [&](const char* why, const char* instead) {
    throw_usage("{}: {}: changes nothing, because {}; set {}", origin, key, why, instead);
  };
  if (key == "cluster.nodes") refuse("the study's gpus say how many nodes there are", "gpus");
  if (key == "cluster.leaf.oversubscription" && root["oversubscription"].IsDefined())
    refuse("the study has an oversubscription of its own", "oversubscription");
}

/// Marks a section with a changed value as assumed.
void mark_assumed(YAML::Node cluster, const std::vector<std::string>& parts, const std::string& assignment) {
  if (parts.size() < 3 || !cluster["sources"].IsMap() || !cluster["sources"][parts[1]].IsDefined()) return;
  static const std::string kMark = "assumed: set by hand: ";
  const YAML::Node known = cluster["sources"][parts[1]];
  const bool marked = known.IsScalar() && known.Scalar().starts_with(kMark);
  cluster["sources"][parts[1]] = marked ? known.Scalar() + ", " + assignment : kMark + assignment;
}

void set_key(YAML::Node root, const std::string& key, const std::string& value, const std::string& origin) {
  const YAML::Node parsed = load_yaml(value, fmt::format("{}: {}={}", origin, key, value));
  const std::vector<std::string> parts = parts_of(key, origin);
  check_effect(root, key, origin);
  if (parts.size() > 1 && (parts[0] == "cluster" || parts[0] == "model")) take_in(root, parts[0]);
  YAML::Node at = root;  // a handle; reset() moves it without changing the tree
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!at.IsMap()) throw_usage("{}: {}: '{}' is inside no map", origin, key, parts[i]);
    if (!at[parts[i]].IsDefined() || at[parts[i]].IsNull()) at[parts[i]] = YAML::Node(YAML::NodeType::Map);
    at.reset(at[parts[i]]);
  }
  if (!at.IsMap()) throw_usage("{}: {}: the key before '{}' holds a value, needs a map", origin, key, parts.back());
  const YAML::Node before = std::as_const(at)[parts.back()];
  const bool same = before.IsDefined() && before.IsScalar() && parsed.IsScalar() && before.Scalar() == parsed.Scalar();
  at[parts.back()] = parsed;
  if (!same && parts[0] == "cluster") mark_assumed(root["cluster"], parts, key + "=" + value);
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

/// The known key that ends in `key`, or whose last part is nearest to that of `key`; "" without a match.
std::string nearest_end(const std::string& key, const std::vector<std::string>& known) {
  std::vector<std::string> ends;
  for (const std::string& candidate : known) {
    if (candidate.ends_with("." + key)) return candidate;
    ends.push_back(last_part(candidate));
  }
  const std::string end = nearest(last_part(key), ends);
  for (const std::string& candidate : known)
    if (!end.empty() && last_part(candidate) == end) return candidate;
  return "";
}

}  // namespace

std::string set_study_keys(const std::string& text, std::vector<std::pair<std::string, std::string>> assignments,
                           const std::string& origin) {
  std::ranges::stable_sort(assignments, [](const auto& a, const auto& b) {
    return std::ranges::count(a.first, '.') < std::ranges::count(b.first, '.');
  });
  if (assignments.empty()) return text;
  constexpr std::ptrdiff_t kMostDots = 20;  // no file nests as deep
  if (const std::string& longest = assignments.back().first; std::ranges::count(longest, '.') > kMostDots)
    throw_usage("{}: found a key '{}' of more than {} parts", origin, shortened(longest), kMostDots + 1);
  YAML::Node root = load_yaml(text, origin);
  for (const auto& [key, value] : assignments) set_key(root, key, value, origin);
  return emitted(root);
}

std::string set_study_key(const std::string& text, const std::string& key, const std::string& value,
                          const std::string& origin) {
  return set_study_keys(text, {{key, value}}, origin);
}

std::string with_measured(const std::string& text, const std::string& file) {
  if (file.empty()) return text;
  const std::string path = std::filesystem::absolute(file).string();
  return set_study_key(text, "measured",
                       nlohmann::json(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       "--measured");  // a JSON string is YAML
}

std::optional<SuggestedKey> suggested_key(const std::string& key, const std::string& text, const std::string& origin,
                                          const std::set<std::string>& more) {
  YAML::Node root = load_yaml(text, origin);
  const std::map<std::string, std::string> files{{"cluster", named_file(root, "cluster")},
                                                 {"model", named_file(root, "model")}};
  for (const auto& [section, file] : files) take_in(root, section);
  std::set<std::string> asked;
  study_from_text(emitted(root), origin, &asked);
  asked.insert(more.begin(), more.end());
  const std::vector<std::string> known(asked.begin(), asked.end());
  std::string best = nearest(key, known);
  if (best.empty()) best = nearest_end(key, known);
  if (best.empty()) return {};
  const std::size_t dot = best.find('.');
  const auto of = dot == std::string::npos ? files.end() : files.find(best.substr(0, dot));
  return SuggestedKey{best, of == files.end() || of->second.empty() ? origin : of->second};
}

}  // namespace wt
