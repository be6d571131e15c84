// YAML as PyYAML and OmegaConf read it: words such as 1e-5 and 12_000 are numbers, yes and off are not texts.
#include <fmt/format.h>

#include <cstdlib>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/text.hpp"
#include "configs/spec/support/yaml.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {
namespace {

Settings::Value value_of_scalar(const YAML::Node& node) {
  const std::string text = node.Scalar(), word = lower(text);
  if (node.Tag() == "!") return text;  // in quotes
  if (text.empty() || word == "null" || text == "~") return nullptr;
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return scalar_of_word(text);
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
    for (const auto& entry : node) out[entry.first.Scalar()] = value_of_yaml(entry.second);
  return out;
}

void add_map(const YAML::Node& map, const std::string& prefix, Settings& out) {
  for (const auto& entry : map) {
    const std::string key = prefix + entry.first.Scalar();
    if (out.has(key)) out.fail(key, "found twice, allowed once");
    if (entry.second.IsMap() && entry.second.size() > 0)
      add_map(entry.second, key + ".", out);
    else
      out.put(key, value_of_yaml(entry.second));
  }
}

std::string yaml_text(const Settings::Value& value) {
  if (value.is_number()) return plain_number(value);
  if (value.is_array()) {
    std::string out;
    for (const Settings::Value& one : value) out += (out.empty() ? "" : ", ") + yaml_text(one);
    return "[" + out + "]";
  }
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  const bool plain = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
                         std::string::npos &&
                     value_of_yaml(YAML::Load(text)) == value && text.front() != '-';
  return plain ? text : value.dump();
}

using Tree = nlohmann::ordered_json;

void print_tree(const Tree& tree, const std::string& indent, std::string& out) {
  for (const auto& [name, inner] : tree.items()) {
    out += indent + name + ":";
    if (inner.is_object() && !inner.empty())
      out += "\n", print_tree(inner, indent + "  ", out);
    else
      out += " " + yaml_text(Settings::Value(inner)) + "\n";
  }
}

}  // namespace

Settings::Value value_from_yaml(const std::string& text) {
  try {
    return value_of_yaml(YAML::Load(text));
  } catch (const YAML::Exception&) {
    return text;
  }
}

Settings settings_from_yaml(const std::string& text, const std::string& origin) {
  Settings out(origin);
  const YAML::Node root = load_yaml(text, origin);
  if (!root.IsMap()) throw_error(Code::usage, "{}: found no map, needs YAML with one", origin);
  add_map(root, "", out);
  return out;
}

std::string settings_to_yaml(const Settings& settings) {
  Tree tree = Tree::object();
  for (const Settings::Entry& entry : settings.entries()) {
    Tree* at = &tree;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = entry.key.find('.', begin)) != std::string::npos; begin = dot + 1)
      at = &(*at)[entry.key.substr(begin, dot - begin)];
    (*at)[entry.key.substr(begin)] = Tree(entry.value);
  }
  std::string out;
  print_tree(tree, "", out);
  return out;
}

}  // namespace wt
