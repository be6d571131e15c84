// The content of a recipe: ordered values by dotted key. TOML, YAML and command lines are read into it and printed from
// it. Reading a value marks it; unmarked values are those that an import drops. A name with a dot, a bracket or a quote
// is quoted, as in TOML: streams."en.wiki".local.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"

namespace wt {

class Settings {
 public:
  using Value = nlohmann::json;  ///< a scalar or a list; null = a key without a value
  struct Entry {
    std::string key;
    Value value;
  };

  Settings() = default;
  explicit Settings(std::string origin) : origin_(std::move(origin)) {}

  /// Replaces the value of an existing key at its old position.
  void put(const std::string& key, Value value);
  /// Moves the value to a name that has none yet, and remembers that. Two names that end with a dot stand for all keys
  /// below them. Without such a key nothing happens.
  void rename(const std::string& old, const std::string& now);
  /// "OLD: a word of another release, read as NOW".
  const std::vector<std::string>& renamed() const { return renamed_; }
  /// Removes an entry if it is there.
  void remove(const std::string& key);
  /// The value, or null, without marking it.
  Value peek(const std::string& key) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }
  bool mentions(const std::string& key) const;      ///< with or without a value
  bool has_under(const std::string& prefix) const;  ///< any key "prefix.*"

  /// The value, or null. All readers mark the key as read.
  Value value(const std::string& key);
  /// Return the fallback if there is no value. Throw Error{usage} naming origin and key for a value of another type or
  /// below the minimum.
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t minimum = 0);
  double number(const std::string& key, double fallback, double minimum = 0);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::vector<std::string> texts(const std::string& key);
  template <typename... Args>
  [[noreturn]] void fail(const std::string& key, fmt::format_string<Args...> format, Args&&... args) const {
    throw_usage("{}: {}: {}{}", origin_, key, fmt::format(format, std::forward<Args>(args)...), hint_of(key));
  }

  /// Replaces "${a.b}" in texts by the value of a.b, as OmegaConf does. Throws Error{usage} for an unknown key.
  void resolve_references();
  bool was_read(const std::string& key) const { return read_.contains(key); }
  /// Every key that a reader asked for, whether it is there or not.
  const std::set<std::string>& asked() const { return read_; }
  void mark_read(const std::string& key) { read_.insert(key); }
  /// "KEY VALUE" for each unmarked value.
  std::vector<std::string> unread() const;
  const std::vector<Entry>& entries() const { return entries_; }
  /// The value, read or not; null without one.
  Value at(const std::string& key) const { return has(key) ? *find(key) : Value(); }
  /// What an error about the key adds: why its value is what it is.
  void hint(const std::string& key, std::string text) { hints_[key] = std::move(text); }
  /// What a reader took for granted; a line of the import's list of assumptions.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Flags that are there only if a condition holds that is not known: "--fp8-format hybrid".
  void add_optional(std::string words, std::string condition) {
    optional_.emplace_back(std::move(words), std::move(condition));
  }
  const std::vector<std::pair<std::string, std::string>>& optional() const { return optional_; }
  const std::string& origin() const { return origin_; }

 private:
  const Value* find(const std::string& key) const;
  Value resolved(const Value& value, int depth);
  std::string hint_of(const std::string& key) const {
    const auto found = hints_.find(key);
    return found == hints_.end() ? "" : "; " + found->second;
  }

  std::string origin_;
  std::vector<Entry> entries_;
  std::vector<std::string> renamed_;
  std::set<std::string> read_;
  std::map<std::string, std::string> hints_;
  std::vector<std::string> notes_;
  std::vector<std::pair<std::string, std::string>> optional_;
  std::int64_t followed_ = 0;  ///< number of values that references have led to
};

/// Parses an unquoted word: as a number if possible (12_000, 1e-5), else as text.
Settings::Value scalar_of_word(const std::string& word);
/// Prints a number that all formats read back unchanged: shortest digits, with a point unless it is whole.
std::string plain_number(const Settings::Value& number);

/// Each throws Error{usage} naming `origin`.
Settings settings_from_toml(const std::string& text, const std::string& origin);
std::string settings_to_toml(const Settings& settings);
/// Parses one YAML value: a word, a list in [], null.
Settings::Value value_from_yaml(const std::string& text);
Settings settings_from_yaml(const std::string& text, const std::string& origin);
/// The same for programs that read it with PyYAML, where the last of two equal keys of a map holds. OmegaConf refuses
/// them.
Settings settings_from_pyyaml(const std::string& text, const std::string& origin);
/// A list of maps with a key in `spread` becomes entries KEY[0]..., KEY[1]...; other lists are values.
Settings settings_from_yaml(const std::string& text, const std::string& origin, const std::set<std::string>& spread);
std::string settings_to_yaml(const Settings& settings);
/// A name as a part of a dotted key, quoted if necessary.
std::string key_part(const std::string& name);

struct RecipeSource;
/// Parses a command line, alone or in a shell script: "--flag value ..." as "flag" (true without a value, a list for
/// several; dashes instead of underscores), "a.b=c" as "a.b". Of the launcher only "launch.gpus" is left, or
/// "launch.asks", which is the words that would say it; "launch.fallback" names variables that nobody set.
/// Throws Error{usage} for flags that the script does not say.
Settings settings_from_shell(const std::string& text, const std::string& origin, const RecipeSource& source);
Settings settings_from_shell(const std::string& text, const std::string& origin);
/// Prints `command`, then lines "  --flag value \"; keys with a dot or an underscore as "a.b=c".
std::string settings_to_shell(const std::string& command, const Settings& settings);

}  // namespace wt
