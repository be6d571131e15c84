// YAML as PyYAML and OmegaConf read it: 1e-5 and 12_000 are numbers; yes and off are not texts.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <variant>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/base/yaml_repeats.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {
namespace {

Settings::Value value_of_scalar(const YAML::Node& node) {
  const std::string text = node.Scalar(), word = lower(text);
  if (node.Tag() == "!") return text;  // quoted
  if (text.empty() || word == "null" || text == "~") return nullptr;
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return scalar_of_word(text);
}

/// The entries of a map. Maps under "<<" add entries that it does not have, as in YAML 1.1.
std::vector<std::pair<std::string, YAML::Node>> entries_of(const YAML::Node& map) {
  constexpr const char* kMerge = "<<";
  std::vector<std::pair<std::string, YAML::Node>> out;
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(out, [&](const auto& entry) { return entry.first == name; });
  };
  std::map<std::string, std::size_t> places;
  for (const auto& entry : map) {
    const std::string name = entry.first.Scalar();
    if (name == kMerge && (entry.second.IsMap() || entry.second.IsSequence())) continue;
    const auto [known, is_new] = places.emplace(name, out.size());
    if (is_new)
      out.emplace_back(name, entry.second);
    else
      out[known->second].second = entry.second;
  }
  const YAML::Node merged = map[kMerge];
  if (!merged.IsDefined()) return out;
  std::vector<YAML::Node> sources;
  if (merged.IsMap()) sources.push_back(merged);
  if (merged.IsSequence())
    for (const YAML::Node& one : merged) sources.push_back(one);
  for (const YAML::Node& source : sources)
    if (source.IsMap())
      for (auto& entry : entries_of(source))
        if (!has(entry.first)) out.push_back(entry);
  return out;
}

Settings::Value value_of_yaml(const YAML::Node& node) {
  if (node.IsScalar()) return value_of_scalar(node);
  if (node.IsSequence()) {
    Settings::Value out = Settings::Value::array();
    for (const YAML::Node& one : node) out.push_back(value_of_yaml(one));
    return out;
  }
  Settings::Value out = node.IsMap() ? Settings::Value::object() : Settings::Value();
  if (node.IsMap())
    for (const auto& [name, inner] : entries_of(node)) out[name] = value_of_yaml(inner);
  return out;
}

using KeySet = std::set<std::string>;

bool is_list_of_maps(const YAML::Node& node) {
  return node.IsSequence() && node.size() > 0 &&
         std::ranges::all_of(node, [](const YAML::Node& one) { return one.IsMap(); });
}

void add_map(const YAML::Node& map, const std::string& prefix, const KeySet& spread, Settings& out) {
  for (const auto& [name, inner] : entries_of(map)) {
    const std::string key = prefix + key_part(name);
    if (out.has(key)) out.fail(key, "found twice, allowed once");
    if (inner.IsMap() && inner.size() > 0) {
      add_map(inner, key + ".", spread, out);
    } else if (spread.contains(key) && is_list_of_maps(inner)) {
      for (std::size_t i = 0; i < inner.size(); ++i) add_map(inner[i], fmt::format("{}[{}].", key, i), spread, out);
    } else {
      out.put(key, value_of_yaml(inner));
    }
  }
}

Settings settings_of_map(const YAML::Node& root, const std::string& origin, const KeySet& spread) {
  Settings out(origin);
  if (!root.IsMap()) throw_usage("{}: found no map, needs YAML with one", origin);
  add_map(root, "", spread, out);
  return out;
}

std::string yaml_text(const Settings::Value& value) {
  if (value.is_number()) return plain_number(value);
  if (value.is_array()) return fmt::format("[{}]", fmt::join(value | std::views::transform(yaml_text), ", "));
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  const bool plain = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
                         std::string::npos &&
                     value_of_yaml(YAML::Load(text)) == value && text.front() != '-';
  return plain ? text : value.dump();
}

using Tree = nlohmann::ordered_json;

bool is_block_list(const Tree& tree) { return tree.is_array() && !tree.empty() && tree.front().is_object(); }

void print_tree(const Tree& tree, const std::string& indent, std::string& out) {
  for (const auto& [name, inner] : tree.items()) {
    out += indent + yaml_text(name) + ":";
    if (inner.is_object() && !inner.empty()) {
      out += "\n", print_tree(inner, indent + "  ", out);
    } else if (is_block_list(inner)) {
      out += "\n";
      for (const Tree& one : inner) {
        std::string entry;
        print_tree(one, indent + "  ", entry);
        entry[indent.size()] = '-';
        out += entry;
      }
    } else {
      out += " " + yaml_text(Settings::Value(inner)) + "\n";
    }
  }
}

/// The parts of a dotted key. A number is a position in a list.
using KeyPath = std::vector<std::variant<std::string, std::size_t>>;

KeyPath path_of(const std::string& key) {
  KeyPath out;
  for (std::size_t at = 0; at < key.size();) {
    if (key[at] == '"') {
      std::size_t end = at + 1;
      while (key[end] != '"') end += key[end] == '\\' ? 2 : 1;
      out.emplace_back(nlohmann::json::parse(key.substr(at, end + 1 - at)).get<std::string>());
      at = end + 1;
    } else if (key[at] == '[') {
      const std::size_t end = key.find(']', at);
      out.emplace_back(static_cast<std::size_t>(std::stoull(key.substr(at + 1, end - at - 1))));
      at = end + 1;
    } else {
      const std::size_t end = std::min(key.find_first_of(".[", at), key.size());
      out.emplace_back(key.substr(at, end - at));
      at = end;
    }
    if (at < key.size() && key[at] == '.') ++at;
  }
  return out;
}

Tree& child_of(Tree& tree, const KeyPath::value_type& step) {
  if (const auto* place = std::get_if<std::size_t>(&step)) return tree[*place];
  return tree[std::get<std::string>(step)];
}

}  // namespace

Settings::Value value_from_yaml(const std::string& text) {
  try {
    Settings::Value value = value_of_yaml(YAML::Load(text));
    (void)value.dump();  // throws for invalid UTF-8
    return value;
  } catch (const YAML::Exception&) {
    return text;
  } catch (const Settings::Value::type_error&) {
    return text;
  }
}

Settings settings_from_yaml(const std::string& text, const std::string& origin) {
  return settings_from_yaml(text, origin, {});
}

Settings settings_from_pyyaml(const std::string& text, const std::string& origin) {
  std::set<std::string> repeats;
  Settings out = settings_of_map(load_yaml_with_repeats(text, origin, repeats), origin, {});
  for (const std::string& repeat : repeats) out.note(repeat);
  return out;
}

Settings settings_from_yaml(const std::string& text, const std::string& origin, const KeySet& spread) {
  return settings_of_map(load_yaml(text, origin), origin, spread);
}

std::string settings_to_yaml(const Settings& settings) {
  Tree tree = Tree::object();
  for (const Settings::Entry& entry : settings.entries()) {
    Tree* at = &tree;
    for (const auto& step : path_of(entry.key)) at = &child_of(*at, step);
    *at = Tree(entry.value);
  }
  std::string out;
  print_tree(tree, "", out);
  return out;
}

std::string key_part(const std::string& name) {
  return name.empty() || name.find_first_of(".[]\"\\") != std::string::npos ? Settings::Value(name).dump() : name;
}

}  // namespace wt
