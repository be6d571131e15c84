#include "planner/recipes/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace wt {

void Settings::put(const std::string& key, Value value) {
  const auto at = std::ranges::find_if(entries_, [&](const Entry& e) { return e.key == key; });
  if (at == entries_.end())
    entries_.push_back({key, std::move(value)});
  else
    at->value = std::move(value);
}

void Settings::rename(const std::string& old, const std::string& now) {
  for (Entry& entry : entries_) {
    const bool all = old.ends_with('.');
    if (all ? !entry.key.starts_with(old) : entry.key != old) continue;
    const std::string name = all ? now + entry.key.substr(old.size()) : now;
    if (mentions(name)) continue;
    renamed_.push_back(fmt::format("{}: a word of another release, read as {}", entry.key, name));
    entry.key = name;
  }
}

void Settings::remove(const std::string& key) {
  std::erase_if(entries_, [&](const Entry& e) { return e.key == key; });
}

Settings::Value Settings::peek(const std::string& key) const {
  const Value* found = find(key);
  return found == nullptr ? Value() : *found;
}

const Settings::Value* Settings::find(const std::string& key) const {
  const auto at = std::ranges::find_if(entries_, [&](const Entry& e) { return e.key == key; });
  return at == entries_.end() || at->value.is_null() ? nullptr : &at->value;
}

bool Settings::mentions(const std::string& key) const {
  return std::ranges::any_of(entries_, [&](const Entry& e) { return e.key == key; });
}

bool Settings::has_under(const std::string& prefix) const {
  return std::ranges::any_of(entries_, [&](const Entry& e) { return e.key.starts_with(prefix + "."); });
}

Settings::Value Settings::value(const std::string& key) {
  read_.insert(key);
  return peek(key);
}

std::int64_t Settings::integer(const std::string& key, std::int64_t fallback, std::int64_t minimum) {
  const Value found = value(key);
  if (found.is_null()) return fallback;
  const double number = found.is_number() ? found.get<double>() : NAN;
  if (!(std::abs(number) < 0x1p53) || number != std::floor(number) || number < static_cast<double>(minimum))
    fail(key, "found {}, needs a whole number from {}", found.dump(), minimum);
  return static_cast<std::int64_t>(number);
}

double Settings::number(const std::string& key, double fallback, double minimum) {
  const Value found = value(key);
  if (found.is_null()) return fallback;
  if (!found.is_number() || !(found.get<double>() >= minimum))
    fail(key, "found {}, needs a number from {}", found.dump(), minimum);
  return found.get<double>();
}

bool Settings::boolean(const std::string& key, bool fallback) {
  const Value found = value(key);
  if (found.is_null()) return fallback;
  if (!found.is_boolean()) fail(key, "found {}, needs true or false", found.dump());
  return found.get<bool>();
}

std::string Settings::text(const std::string& key, const std::string& fallback) {
  const Value found = value(key);
  if (found.is_null()) return fallback;
  if (found.is_string()) return found.get<std::string>();
  if (found.is_array() || found.is_object()) fail(key, "found {}, needs one word", found.dump());
  return found.dump();
}

std::vector<std::string> Settings::texts(const std::string& key) {
  const Value found = value(key);
  std::vector<std::string> out;
  if (found.is_null()) return out;
  if (!found.is_array()) return {text(key, "")};
  for (const Value& one : found) out.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  return out;
}

Settings::Value Settings::resolved(const Value& value, int depth) {
  constexpr std::int64_t kMostFollowed = 1 << 16;  // a few lists of references can stand for any number of values
  if (depth > 0 && ++followed_ > kMostFollowed)
    throw_usage("{}: found references that stand for more than {} values", origin_, kMostFollowed);
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& one : value) out.push_back(resolved(one, depth));
    return out;
  }
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  constexpr int kDeepest = 16;  // limit for circular references
  for (std::size_t begin; (begin = text.find("${")) != std::string::npos;) {
    const std::size_t end = text.find('}', begin);
    const std::string key = end == std::string::npos ? "" : text.substr(begin + 2, end - begin - 2);
    const Value* found = find(key);
    static const Value kNothing;
    if (found == nullptr && mentions(key)) found = &kNothing;
    if (found == nullptr || depth >= kDeepest)
      throw_usage("{}: found '{}', needs a reference to a key of this file with a value of its own", origin_, text);
    read_.insert(key);
    Value there = resolved(*found, depth + 1);
    if (begin == 0 && end + 1 == text.size()) return there;
    text.replace(begin, end + 1 - begin,
                 there.is_null()     ? ""
                 : there.is_string() ? there.get<std::string>()
                                     : there.dump());
    constexpr std::size_t kLongest = 1 << 16;  // each reference may stand for two of the next
    if (text.size() > kLongest)
      throw_usage("{}: found references that stand for a text of more than {} bytes", origin_, kLongest);
  }
  return text;
}

void Settings::resolve_references() {
  for (Entry& entry : entries_) entry.value = resolved(entry.value, 0);
}

std::vector<std::string> Settings::unread() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_)
    if (!read_.contains(entry.key) && !entry.value.is_null())
      out.push_back(fmt::format("{}: found {}", entry.key,
                                entry.value.is_string() ? entry.value.get<std::string>() : entry.value.dump()));
  return out;
}

Settings::Value scalar_of_word(const std::string& word) {
  std::string digits = word;
  if (digits.find_first_of("0123456789") == std::string::npos) return word;
  if (digits.find_first_not_of("+-.0123456789_eE") != std::string::npos) return word;
  std::erase(digits, '_');
  const char* end = digits.data() + digits.size();
  char* read = nullptr;
  errno = 0;
  if (const long long whole = std::strtoll(digits.c_str(), &read, 10); read == end && errno == 0) return whole;
  errno = 0;
  if (const double number = std::strtod(digits.c_str(), &read); read == end && errno == 0) return number;
  return word;
}

std::string plain_number(const Settings::Value& number) {
  if (number.is_number_unsigned()) return fmt::format("{}", number.get<std::uint64_t>());
  if (number.is_number_integer()) return fmt::format("{}", number.get<std::int64_t>());
  std::string out = fmt::format("{}", number.get<double>());
  if (out.find_first_of(".n") != std::string::npos) return out;
  const std::size_t exponent = out.find('e');
  return exponent == std::string::npos ? out + ".0" : out.insert(exponent, ".0");
}

}  // namespace wt
