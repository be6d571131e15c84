// Strict reading of YAML maps: every key is consumed by the reader that understands it, what is left over is an error
// with the nearest known key; every error names file, line, what was found and what is allowed.
#pragma once
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "configs/base/error.hpp"

namespace wt {

/// A key that no reader knows; usage.
class UnknownKey : public Error {
 public:
  UnknownKey(const std::string& message, std::string key, std::set<std::string> asked)
      : Error(Code::usage, message), key_(std::move(key)), asked_(std::move(asked)) {}
  const std::string& key() const { return key_; }                ///< dotted, from the file's root
  const std::set<std::string>& asked() const { return asked_; }  ///< keys that were looked for until then

 private:
  std::string key_;
  std::set<std::string> asked_;
};

/// The one document of a text. Throws Error{usage} "origin:line: ..." where it is no YAML, has several documents, says
/// a key twice in one map, nests more than 100 levels, or holds more than 5 million values (aliases counted as what
/// they stand for).
YAML::Node load_yaml(const std::string& text, const std::string& origin);

/// One map of a YAML file while it is read. Call finish() after the last key.
class YamlMap {
 public:
  /// Opens a file whose root is a map. Throws Error{usage} when it cannot be read or parsed.
  static YamlMap from_file(const std::filesystem::path& file);
  static YamlMap from_text(const std::string& text, const std::string& origin);
  /// The same, with "${variables.x}" filled in (yaml_references.hpp).
  static YamlMap from_text_with_references(const std::string& text, const std::string& origin);

  bool has(const std::string& key);
  std::string text(const std::string& key);
  std::string text(const std::string& key, const std::string& fallback);
  std::int64_t integer(const std::string& key, std::int64_t minimum, std::int64_t maximum = INT64_MAX);
  std::int64_t integer_or(const std::string& key, std::int64_t fallback, std::int64_t minimum);
  double number(const std::string& key, double minimum = -1e300, double maximum = 1e300);
  double number_or(const std::string& key, double fallback, double minimum = -1e300, double maximum = 1e300);
  bool boolean(const std::string& key, bool fallback);
  /// One of the allowed words.
  std::string choice(const std::string& key, const std::vector<std::string>& allowed, const std::string& fallback = "");
  /// A quantity with a unit, through one of the parse_* functions of quantity.hpp.
  double quantity(const std::string& key, double (*parse)(const std::string&, const std::string&));
  double quantity_or(const std::string& key, double (*parse)(const std::string&, const std::string&), double fallback);
  std::vector<std::int64_t> integers(const std::string& key, std::vector<std::int64_t> fallback = {});
  std::vector<std::string> texts(const std::string& key, std::vector<std::string> fallback = {});
  YamlMap map(const std::string& key);
  std::vector<YamlMap> maps(const std::string& key);
  /// The keys of this map in the file's order, for maps whose keys are names. Counts none as consumed.
  std::vector<std::string> keys() const;
  /// Scalar or map: the raw node, for readers that accept either. Counts as consumed.
  YAML::Node node(const std::string& key);

  /// Throws UnknownKey for a key that nobody asked for.
  void finish() const;
  /// Dotted keys that were asked for so far in this file, there or not, in all of its maps.
  const std::set<std::string>& asked() const { return *asked_; }
  /// Counts a key inside of this map as asked for, where another reader has its raw node.
  void also_asked(const std::string& key) { asked_->insert(dotted(key)); }
  /// Throws Error{usage} "file:line: key: message", of one entry of the key's list "file:line: key[entry]: message".
  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         std::optional<std::size_t> entry = {}) const;
  /// "file:line: path.key" or "file:line: path.key[entry]"
  std::string where(const std::string& key, std::optional<std::size_t> entry = {}) const;
  const std::filesystem::path& file() const { return file_; }

 private:
  YamlMap(YAML::Node node, std::filesystem::path file, std::string path,
          std::shared_ptr<std::set<std::string>> asked = std::make_shared<std::set<std::string>>());
  YAML::Node require(const std::string& key);
  YAML::Node find(const std::string& key);
  std::string scalar(const std::string& key);
  std::string dotted(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  [[noreturn]] void fail_unknown(const std::string& key, const std::string& message) const;

  YAML::Node node_;
  std::filesystem::path file_;
  std::string path_;  ///< dotted path of this map inside the file, "" at the root
  std::vector<std::string> known_;
  std::shared_ptr<std::set<std::string>> asked_;  ///< of the whole file
};

/// Words, numbers and flags as YAML 1.2 reads them; quoted ones are words. For readers of JSON that is inside a YAML
/// file.
nlohmann::json yaml_to_json(const YAML::Node& node);

}  // namespace wt
