// TOML with toml++. Only this file includes it, because its headers take seconds to compile.
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <map>
#include <ranges>

#include "configs/base/error.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {
namespace {

Settings::Value value_of_toml(const toml::node& node, const std::string& origin) {
  if (const auto* list = node.as_array()) {
    Settings::Value out = Settings::Value::array();
    for (const toml::node& one : *list) out.push_back(value_of_toml(one, origin));
    return out;
  }
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<std::int64_t>()) return *whole;
  if (const auto number = node.value_exact<double>()) return *number;
  if (const auto flag = node.value_exact<bool>()) return *flag;
  if (const auto* table = node.as_table()) {
    Settings::Value out = Settings::Value::object();
    for (const auto& [name, inner] : *table) out[std::string(name.str())] = value_of_toml(inner, origin);
    return out;
  }
  throw_usage("{}:{}: found a date, needs numbers, texts or lists of them", origin, node.source().begin.line);
}

void add_table(const toml::table& table, const std::string& prefix, Settings& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const auto* inner = node.as_table())
      add_table(*inner, key + ".", out);
    else
      out.put(key, value_of_toml(node, out.origin()));
  }
}

std::string toml_text(const Settings::Value& value) {
  if (value.is_number()) return plain_number(value);
  if (!value.is_array()) return value.dump();  // texts and booleans are written alike
  return fmt::format("[{}]", fmt::join(value | std::views::transform(toml_text), ", "));
}

}  // namespace

Settings settings_from_toml(const std::string& text, const std::string& origin) {
  Settings out(origin);
  try {
    add_table(toml::parse(text, origin), "", out);
  } catch (const toml::parse_error& error) {
    throw_usage("{}:{}: found broken TOML, needs a file that torchtitan reads: {}", origin, error.source().begin.line,
                error.description());
  }
  return out;
}

std::string settings_to_toml(const Settings& settings) {
  std::vector<std::string> sections;  // in the order of their first keys
  std::map<std::string, std::string> lines;
  for (const Settings::Entry& entry : settings.entries()) {
    const std::size_t dot = entry.key.rfind('.');
    const std::string section = dot == std::string::npos ? "" : entry.key.substr(0, dot);
    if (!lines.contains(section)) sections.push_back(section);
    lines[section] += fmt::format("{} = {}\n", entry.key.substr(dot + 1), toml_text(entry.value));
  }
  std::string out;
  for (const std::string& section : sections)
    out += (out.empty() ? "" : "\n") + (section.empty() ? "" : fmt::format("[{}]\n", section)) + lines[section];
  return out;
}

}  // namespace wt
