#include "configs/base/json_reader.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

using nlohmann::json;

std::string escaped(std::string key) {  // RFC 6901
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '~')
      key.replace(i++, 1, "~0");
    else if (key[i] == '/')
      key.replace(i++, 1, "~1");
  }
  return key;
}

}  // namespace

json parse_json(const std::string& text, const std::string& origin) {
  // nlohmann silently keeps the last of two equal keys, which would lose measurements.
  std::vector<std::set<std::string>> open_objects;
  if (too_deep(text))
    throw_usage("{}: found objects and lists in more than {} levels, needs fewer", origin, kDeepestJson);
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == json::parse_event_t::object_end) open_objects.pop_back();
    if (event == json::parse_event_t::key && !open_objects.back().insert(parsed.get<std::string>()).second)
      throw_usage("{}: found the key '{}' twice in one object, allowed once; remove one", origin,
                  parsed.get<std::string>());
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& e) {
    throw_usage("{}: found text that is not JSON ({}), allowed one JSON document; repair or rewrite it", origin,
                e.what());
  }
}

json parse_python_json(const std::string& text, const std::string& origin) {
  return parse_json(without_python_numbers(text), origin);
}

json read_json(const std::filesystem::path& file) { return parse_json(read_file(file, "a JSON file"), file.string()); }

std::string differing_keys(const nlohmann::json& found, const nlohmann::json& needed) {
  const nlohmann::json have = found.flatten(), want = needed.flatten();
  std::set<std::string> keys;
  for (const nlohmann::json* one : {&have, &want})
    for (const auto& [key, value] : one->items()) keys.insert(key);
  const auto shown = [](const nlohmann::json& flat, const std::string& key) {
    return flat.contains(key) ? flat[key].dump() : "nothing";
  };
  std::string out;
  for (const std::string& key : keys)
    if (!have.contains(key) || !want.contains(key) || have[key] != want[key])
      out += fmt::format("{}{}: found {}, needs {}", out.empty() ? "" : "; ", key, shown(have, key), shown(want, key));
  return out;
}

JsonReader::JsonReader(const json& value, std::string origin, std::string pointer)
    : value_(&value), origin_(std::move(origin)), pointer_(std::move(pointer)) {}

std::string JsonReader::shown() const {
  const std::string text = value_->dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string what = text.size() <= 60 ? text : text.substr(0, 57) + "...";
  return fmt::format("{} {}", value_->type_name(), what);
}

void JsonReader::fail(const std::string& found, const std::string& allowed) const {
  throw_usage("{}: {}: found {}, allowed {}", origin_, pointer_.empty() ? "/" : pointer_, found, allowed);
}

void JsonReader::expect_object() const {
  if (!value_->is_object()) fail(shown(), "an object");
}

void JsonReader::allow_only(const std::vector<std::string>& known) const {
  expect_object();
  for (const auto& item : value_->items())
    if (std::ranges::find(known, item.key()) == known.end())
      fail(fmt::format("unknown key '{}'", item.key()),
           fmt::format("{}{}", fmt::join(known, ", "), did_you_mean(item.key(), known)));
}

bool JsonReader::has(const std::string& key) const {
  expect_object();
  return value_->contains(key);
}

JsonReader JsonReader::at(const std::string& key) const {
  expect_object();
  const auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("no key '{}'", key), fmt::format("an object with '{}'; add it", key));
  return {*found, origin_, pointer_ + "/" + escaped(key)};
}

std::vector<JsonReader> JsonReader::elements() const {
  if (!value_->is_array()) fail(shown(), "an array");
  std::vector<JsonReader> all;
  all.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    all.emplace_back((*value_)[i], origin_, fmt::format("{}/{}", pointer_, i));
  return all;
}

std::vector<std::string> JsonReader::strings() const { return mapped(elements(), &JsonReader::string); }

std::vector<std::pair<std::string, JsonReader>> JsonReader::items() const {
  expect_object();
  std::vector<std::pair<std::string, JsonReader>> all;
  for (const auto& item : value_->items())
    all.emplace_back(item.key(), JsonReader(item.value(), origin_, pointer_ + "/" + escaped(item.key())));
  return all;
}

std::string JsonReader::string() const {
  if (!value_->is_string()) fail(shown(), "a string");
  return value_->get<std::string>();
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) fail(shown(), "true or false");
  return value_->get<bool>();
}

double JsonReader::finite() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) fail(shown(), "a finite number");
  return value_->get<double>();
}

double JsonReader::non_negative() const {
  const double number = finite();
  if (number < 0) fail(shown(), "a finite number >= 0");
  return number;
}

std::int64_t JsonReader::integer() const {
  const bool too_large = value_->is_number_unsigned() && value_->get<std::uint64_t>() > INT64_MAX;
  if (!value_->is_number_integer() || too_large) fail(shown(), "an integer of 64 bits");
  return value_->get<std::int64_t>();
}

}  // namespace wt
