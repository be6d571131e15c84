// What a recipe says: values by dotted key, in order. TOML, YAML and command lines are all read into this and printed
// from it. Whoever reads a value marks it; what nobody asked for is what an import drops.
// A name that has a dot, a bracket or a quote itself stands in quotes, as in TOML: streams."en.wiki".local.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wt {

class Settings {
 public:
  using Value = nlohmann::json;  ///< a scalar or a list; null = the key without a value
  struct Entry {
    std::string key;
    Value value;
  };

  Settings() = default;
  explicit Settings(std::string origin) : origin_(std::move(origin)) {}

  /// A key that is there already gets the new value, at its old place.
  void put(const std::string& key, Value value);
  bool has(const std::string& key) const { return find(key) != nullptr; }
  bool mentions(const std::string& key) const;      ///< be it without a value
  bool has_under(const std::string& prefix) const;  ///< any key "prefix.*"

  /// The value, or null where there is none. All readers mark the key as read.
  Value value(const std::string& key);
  /// Throw Error{usage} naming origin and key where the value is of another kind, or below the minimum. Without a value
  /// they give the fallback.
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t minimum = 0);
  double number(const std::string& key, double fallback, double minimum = 0);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::vector<std::string> texts(const std::string& key);
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

  /// "${a.b}" in texts becomes the value of a.b, as OmegaConf reads it. Throws Error{usage} for what is nowhere.
  void resolve_references();
  bool was_read(const std::string& key) const { return read_.contains(key); }
  void mark_read(const std::string& key) { read_.insert(key); }
  /// "KEY VALUE" of all that nobody read.
  std::vector<std::string> unread() const;
  const std::vector<Entry>& entries() const { return entries_; }
  const std::string& origin() const { return origin_; }

 private:
  const Value* find(const std::string& key) const;
  Value resolved(const Value& value, int depth);

  std::string origin_;
  std::vector<Entry> entries_;
  std::set<std::string> read_;
  std::int64_t followed_ = 0;  ///< values that references led to
};

/// An unquoted word: a number where it is one (12_000, 1e-5), else a text.
Settings::Value scalar_of_word(const std::string& word);
/// A number as all these formats read it back the same: shortest digits, with a point where it is no whole number.
std::string plain_number(const Settings::Value& number);

/// Each throws Error{usage} naming `origin`.
Settings settings_from_toml(const std::string& text, const std::string& origin);
std::string settings_to_toml(const Settings& settings);
/// One value as YAML writes it: a word, a list in [], null.
Settings::Value value_from_yaml(const std::string& text);
Settings settings_from_yaml(const std::string& text, const std::string& origin);
/// A list of maps whose key is among `spread` has its entries under KEY[0], KEY[1]; other lists are values.
Settings settings_from_yaml(const std::string& text, const std::string& origin, const std::set<std::string>& spread);
std::string settings_to_yaml(const Settings& settings);
/// A name as a part of a dotted key: in quotes where it needs them.
std::string key_part(const std::string& name);

/// A command line, alone or in a shell script: "--flag value ..." under "flag" (true without a value, a list of
/// several; dashes for underscores), "a.b=c" under "a.b". Variables and lists that the script itself sets are filled
/// in.
Settings settings_from_shell(const std::string& text, const std::string& origin);
/// "  --flag value \" lines; keys with a dot or an underscore as "a.b=c". `command` comes first.
std::string settings_to_shell(const std::string& command, const Settings& settings);

}  // namespace wt
