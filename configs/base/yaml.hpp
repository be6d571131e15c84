// Strict reading of YAML maps. Each reader consumes the keys that it understands; a key left over is an error that
// suggests the nearest known key. Every error names file, line, what was found and what is allowed.
#pragma once
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"

namespace wt {

/// A key that no reader knows; Code::usage.
class UnknownKey : public Error {
 public:
  UnknownKey(const std::string& message, std::string key, std::set<std::string> asked)
      : Error(Code::usage, message), key_(std::move(key)), asked_(std::move(asked)) {}
  const std::string& key() const { return key_; }                ///< dotted, from the file's root
  const std::set<std::string>& asked() const { return asked_; }  ///< keys that readers asked for before the error

 private:
  std::string key_;
  std::set<std::string> asked_;
};

/// Parses a text with one document. Throws Error{usage} "origin:line: ...": no YAML, several documents, a key twice in
/// one map, more than 100 levels, more than 5 million values after aliases are expanded.
YAML::Node load_yaml(const std::string& text, const std::string& origin);

/// One map of a YAML file while it is read. Call finish() after the last key.
class YamlMap {
 public:
  /// Opens a file whose root is a map. Throws Error{usage} when it cannot be read or parsed.
  static YamlMap from_file(const std::filesystem::path& file);
  static YamlMap from_text(const std::string& text, const std::string& origin);
  /// Also replaces "${variables.x}" (yaml_references.hpp).
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
  /// The enumerator of one of the words, which are in the order of their enumerators.
  template <typename Enum, typename Words>
  Enum enumerator(const std::string& key, const Words& words) {
    return *enumerator_of<Enum>(choice(key, {std::begin(words), std::end(words)}), words);
  }
  template <typename Enum, typename Words>
  Enum enumerator(const std::string& key, const Words& words, Enum fallback) {
    return has(key) ? enumerator<Enum>(key, words) : fallback;
  }
  /// Those of a list of words.
  template <typename Enum, typename Words>
  std::vector<Enum> enumerators(const std::string& key, const Words& words) {
    std::vector<Enum> out;
    for (const std::string& word : texts(key)) {
      const auto found = enumerator_of<Enum>(word, words);
      if (!found) fail(key, "found '{}', allowed {}", word, fmt::join(words, ", "));
      out.push_back(*found);
    }
    return out;
  }
  /// A quantity with a unit, through one of the parse_* functions of quantity.hpp.
  double quantity(const std::string& key, double (*parse)(const std::string&, const std::string&));
  double quantity_or(const std::string& key, double (*parse)(const std::string&, const std::string&), double fallback);
  std::vector<std::int64_t> integers(const std::string& key, std::vector<std::int64_t> fallback = {});
  std::vector<std::string> texts(const std::string& key, std::vector<std::string> fallback = {});
  YamlMap map(const std::string& key);
  std::vector<YamlMap> maps(const std::string& key);
  /// The keys in the file's order, for maps whose keys are names. Does not count them as consumed.
  std::vector<std::string> keys() const;
  /// The raw node, for readers that accept a scalar or a map. Counts as consumed.
  YAML::Node node(const std::string& key);

  /// Throws UnknownKey for a key that no reader asked for.
  void finish() const;
  /// Dotted keys that were asked for so far, present or not, in all maps of the file.
  const std::set<std::string>& asked() const { return *asked_; }
  /// Marks a key of this map as asked for, when another reader has the raw node.
  void also_asked(const std::string& key) { asked_->insert(dotted(key)); }
  /// Throws Error{usage} "file:line: key: message".
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;
  template <typename... Args>
  [[noreturn]] void fail(const std::string& key, fmt::format_string<Args...> format, Args&&... args) const {
    fail(key, fmt::format(format, std::forward<Args>(args)...));
  }
  /// The same of one entry of a list: "file:line: key[entry]: message".
  template <typename... Args>
  [[noreturn]] void fail_entry(const std::string& key, std::optional<std::size_t> entry,
                               fmt::format_string<Args...> format, Args&&... args) const {
    throw_usage("{}: {}", where(key, entry), fmt::format(format, std::forward<Args>(args)...));
  }
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

/// Converts scalars by YAML 1.2's rules: words, numbers and flags; quoted scalars are words. For JSON inside a YAML
/// file.
nlohmann::json yaml_to_json(const YAML::Node& node);

}  // namespace wt
