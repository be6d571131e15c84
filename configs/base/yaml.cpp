#include "configs/base/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/base/utf8.hpp"
#include "configs/base/yaml_references.hpp"
#include "configs/base/yaml_repeats.hpp"

namespace wt {
namespace {

constexpr int kDeepest = 100;          // levels of maps and lists
constexpr int kMostNodes = 5'000'000;  // after aliases are expanded

}  // namespace

YamlMap::YamlMap(YAML::Node node, std::filesystem::path file, std::string path,
                 std::shared_ptr<std::set<std::string>> asked)
    : node_(std::move(node)), file_(std::move(file)), path_(std::move(path)), asked_(std::move(asked)) {
  if (!node_.IsMap())
    throw_usage("{}:{}: {}: found {}, needs a map of keys and values", file_.string(), node_.Mark().line + 1,
                path_.empty() ? "the file" : path_,
                node_.IsNull()       ? "nothing"
                : node_.IsSequence() ? "a list"
                                     : "a single value");
}

namespace {

bool is_same_scalar(const YAML::Node& a, const YAML::Node& b) {
  return a.IsScalar() && b.IsScalar() && a.Scalar() == b.Scalar() && a.Tag() == b.Tag();
}

/// Throws where a key is not a scalar, a value is not UTF-8, or a map has a key twice (yaml-cpp would return the
/// first); with `repeats` that is told there instead.
void check_keys(const YAML::Node& node, const std::string& origin, int depth, int& nodes,
                std::set<std::string>* repeats) {
  const auto fail = [&](const YAML::Node& at, const std::string& what) {
    throw_usage("{}:{}: {}", origin, at.Mark().line + 1, what);
  };
  if (depth > kDeepest) fail(node, fmt::format("found maps and lists in more than {} levels", kDeepest));
  if (++nodes > kMostNodes) fail(node, fmt::format("found more than {} values", kMostNodes));
  const auto need_text = [&](const YAML::Node& scalar) {  // yaml-cpp turns each of these escapes into a lone byte
    if (!is_utf8(scalar.Scalar()))
      fail(scalar, "found the escape \\N or \\_, or a byte of 0, needs the character itself");
  };
  if (node.IsScalar()) need_text(node);
  if (node.IsSequence())
    for (const auto& entry : node) check_keys(entry, origin, depth + 1, nodes, repeats);
  if (!node.IsMap()) return;
  const auto line_of = [](const YAML::Node& key) { return key.Mark().line + 1; };
  std::map<std::string, std::pair<YAML::Node, YAML::Node>> entries;  // what holds so far
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) fail(entry.first, "found a key that is no word");
    need_text(entry.first);
    const auto [known, is_new] = entries.try_emplace(entry.first.Scalar(), entry.first, entry.second);
    if (!is_new) {
      auto& [key, value] = known->second;
      const bool merges = known->first == "<<";  // PyYAML merges both
      if (repeats == nullptr || merges)
        fail(entry.first,
             fmt::format("{}: found a second time, first in line {}; needs each key once", known->first, line_of(key)));
      if (!is_same_scalar(value, entry.second))
        repeats->insert(fmt::format("{}: found in line {} and with another value in line {}, which holds", known->first,
                                    line_of(key), line_of(entry.first)));
      known->second = {entry.first, entry.second};
    }
    check_keys(entry.second, origin, depth + 1, nodes, repeats);
  }
}

/// The line at which a second document begins; 0 = none. In YAML, three dashes at a line's begin mean nothing else.
int second_document(const std::string& text) {
  std::istringstream lines(text);
  bool content = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const bool marker =
        line.starts_with("---") && (line.size() == 3 || std::isspace(static_cast<unsigned char>(line[3])));
    if (marker && content) return number;
    const std::size_t first = line.find_first_not_of(" \t\r", marker ? 3 : 0);
    content = content || (first != std::string::npos && line[first] != '#' && line[0] != '%');
  }
  return 0;
}

YAML::Node loaded(const std::string& text, const std::string& origin, std::set<std::string>* repeats) {
  need_utf8(text, origin);
  try {
    const YAML::Node root = YAML::Load(text);
    if (const int line = second_document(text); line > 0)
      throw_usage("{}:{}: found a second YAML document (---), needs one", origin, line);
    int nodes = 0;
    check_keys(root, origin, 0, nodes, repeats);
    return root;
  } catch (const YAML::Exception& e) {
    throw_usage("{}:{}: not valid YAML: {}", origin, e.mark.line + 1, e.msg);
  }
}

}  // namespace

YAML::Node load_yaml(const std::string& text, const std::string& origin) { return loaded(text, origin, nullptr); }

YAML::Node load_yaml_with_repeats(const std::string& text, const std::string& origin, std::set<std::string>& repeats) {
  return loaded(text, origin, &repeats);
}

YamlMap YamlMap::from_text(const std::string& text, const std::string& origin) {
  return {load_yaml(text, origin), origin, ""};
}

YamlMap YamlMap::from_text_with_references(const std::string& text, const std::string& origin) {
  YamlMap out = from_text(text, origin);
  fill_in_references(out.node_, origin);
  return out;
}

YamlMap YamlMap::from_file(const std::filesystem::path& file) {
  return from_text(read_file(file, "a YAML file"), file.string());
}

std::string YamlMap::where(const std::string& key, std::optional<std::size_t> entry) const {
  const YAML::Node child = std::as_const(node_)[key];
  const int line = (entry ? child[*entry] : child.IsDefined() ? child : node_).Mark().line + 1;
  return fmt::format("{}:{}: {}{}{}{}", file_.string(), line, path_, path_.empty() || key.empty() ? "" : ".", key,
                     entry ? fmt::format("[{}]", *entry) : "");
}

void YamlMap::fail(const std::string& key, const std::string& message) const {
  throw_usage("{}: {}", where(key), message);
}

void YamlMap::fail_unknown(const std::string& key, const std::string& message) const {
  throw UnknownKey(where(key) + ": " + message, dotted(key), *asked_);
}

YAML::Node YamlMap::find(const std::string& key) {
  known_.push_back(key);
  asked_->insert(dotted(key));
  return std::as_const(node_)[key];
}

bool YamlMap::has(const std::string& key) {
  const YAML::Node child = find(key);
  return child.IsDefined() && !child.IsNull();
}

YAML::Node YamlMap::require(const std::string& key) {
  if (!has(key)) {
    for (const auto& entry : node_)  // a misspelt key may explain the missing one
      if (const auto found = entry.first.as<std::string>(); nearest(found, {key}) == key)
        fail_unknown(found, fmt::format("unknown key; did you mean '{}', which is missing?", key));
    fail(key, "missing; this key is required");
  }
  return std::as_const(node_)[key];
}

std::string YamlMap::scalar(const std::string& key) {
  const YAML::Node child = require(key);
  if (!child.IsScalar()) fail(key, "found a {}, needs a single value", child.IsMap() ? "map" : "list");
  return child.Scalar();
}

std::string YamlMap::text(const std::string& key) { return scalar(key); }
std::string YamlMap::text(const std::string& key, const std::string& fallback) {
  return has(key) ? scalar(key) : fallback;
}

std::int64_t YamlMap::integer(const std::string& key, std::int64_t minimum, std::int64_t maximum) {
  const std::string found = scalar(key);
  std::int64_t value = 0;
  const bool parsed = YAML::convert<std::int64_t>::decode(require(key), value);
  if (!parsed || value < minimum || value > maximum)
    fail(key, "found '{}', needs a whole number {}", found,
         maximum == INT64_MAX ? fmt::format(">= {}", minimum) : fmt::format("in {}..{}", minimum, maximum));
  return value;
}

std::int64_t YamlMap::integer_or(const std::string& key, std::int64_t fallback, std::int64_t minimum) {
  return has(key) ? integer(key, minimum) : fallback;
}

double YamlMap::number(const std::string& key, double minimum, double maximum) {
  std::string found = scalar(key);
  double value = 0;
  const bool parsed = YAML::convert<double>::decode(require(key), value);
  if (!parsed || !std::isfinite(value) || value < minimum || value > maximum)
    fail(key, "found '{}', needs a number{}", found,
         minimum > -1e300 || maximum < 1e300 ? fmt::format(" in {:g}..{:g}", minimum, maximum) : "");
  return value;
}

double YamlMap::number_or(const std::string& key, double fallback, double minimum, double maximum) {
  return has(key) ? number(key, minimum, maximum) : fallback;
}

bool YamlMap::boolean(const std::string& key, bool fallback) {
  if (!has(key)) return fallback;
  bool value = false;
  if (require(key).Tag() == "!" || !YAML::convert<bool>::decode(require(key), value))
    fail(key, "found '{}', needs true or false", scalar(key));
  return value;
}

std::string YamlMap::choice(const std::string& key, const std::vector<std::string>& allowed,
                            const std::string& fallback) {
  if (!fallback.empty() && !has(key)) return fallback;
  const std::string found = scalar(key);
  if (std::ranges::find(allowed, found) == allowed.end())
    fail(key, "found '{}', allowed {}", found, fmt::join(allowed, ", "));
  return found;
}

double YamlMap::quantity(const std::string& key, double (*parse)(const std::string&, const std::string&)) {
  return parse(scalar(key), where(key));
}

double YamlMap::quantity_or(const std::string& key, double (*parse)(const std::string&, const std::string&),
                            double fallback) {
  return has(key) ? quantity(key, parse) : fallback;
}

std::vector<std::int64_t> YamlMap::integers(const std::string& key, std::vector<std::int64_t> fallback) {
  if (!has(key)) return fallback;
  const YAML::Node list = require(key);
  std::vector<std::int64_t> values;
  if (!list.IsSequence()) fail(key, "needs a list of whole numbers");
  for (const auto& item : list) {
    std::int64_t value = 0;
    if (!YAML::convert<std::int64_t>::decode(item, value))
      fail(key, "found '{}' in the list, needs whole numbers", item.IsScalar() ? item.Scalar() : "a list");
    values.push_back(value);
  }
  return values;
}

std::vector<std::string> YamlMap::texts(const std::string& key, std::vector<std::string> fallback) {
  if (!has(key)) return fallback;
  const YAML::Node list = require(key);
  std::vector<std::string> values;
  if (!list.IsSequence()) fail(key, "needs a list of words");
  for (const auto& item : list) {
    if (!item.IsScalar()) fail(key, "needs a list of words");
    values.push_back(item.Scalar());
  }
  return values;
}

YamlMap YamlMap::map(const std::string& key) { return {require(key), file_, dotted(key), asked_}; }

std::vector<YamlMap> YamlMap::maps(const std::string& key) {
  std::vector<YamlMap> out;
  const YAML::Node list = require(key);
  if (!list.IsSequence()) fail(key, "needs a list of maps");
  for (std::size_t i = 0; i < list.size(); ++i)
    out.push_back(YamlMap(list[i], file_, fmt::format("{}[{}]", dotted(key), i), asked_));
  return out;
}

std::vector<std::string> YamlMap::keys() const {
  return mapped(node_, [](const auto& entry) { return entry.first.template as<std::string>(); });
}

YAML::Node YamlMap::node(const std::string& key) { return require(key); }

void YamlMap::finish() const {
  for (const auto& entry : node_) {
    const auto key = entry.first.as<std::string>();
    if (std::ranges::find(known_, key) != known_.end()) continue;
    std::vector<std::string> allowed = known_;
    std::ranges::sort(allowed);
    allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
    const std::string near = nearest(key, allowed);
    fail_unknown(key,
                 fmt::format("unknown key; {}allowed here: {}",
                             near.empty() ? "" : fmt::format("did you mean '{}'? ", near), fmt::join(allowed, ", ")));
  }
}

static nlohmann::json scalar_to_json(const YAML::Node& node) {
  if (node.Tag() == "!") return node.Scalar();  // quoted
  if (node.Scalar() == "true" || node.Scalar() == "false") return node.Scalar() == "true";
  if (std::int64_t whole = 0; YAML::convert<std::int64_t>::decode(node, whole)) return whole;
  if (double number = 0; YAML::convert<double>::decode(node, number)) return number;
  return node.Scalar();
}

nlohmann::json yaml_to_json(const YAML::Node& node) {
  if (node.IsScalar()) return scalar_to_json(node);
  if (node.IsMap()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& entry : node) object[entry.first.as<std::string>()] = yaml_to_json(entry.second);
    return object;
  }
  if (!node.IsSequence()) return nullptr;
  nlohmann::json array = nlohmann::json::array();
  for (const auto& entry : node) array.push_back(yaml_to_json(entry));
  return array;
}

}  // namespace wt
