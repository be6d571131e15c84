// Strict reading of JSON objects. Every error names the file and the JSON pointer; an unknown key suggests the nearest.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// Parses a whole file. Throws Error{usage} with file and place: a missing file, broken JSON, a number out of range, a
/// key given twice in one object.
nlohmann::json read_json(const std::filesystem::path& file);
/// The same from memory; `origin` stands for the file's name in errors.
nlohmann::json parse_json(const std::string& text, const std::string& origin);
/// The same of a file that Python's json wrote: NaN, Infinity and -Infinity, which JSON does not have, become words.
nlohmann::json parse_python_json(const std::string& text, const std::string& origin);

/// The differences between two documents, by key: "/ffn: found 512, needs 256; /tied: found nothing, needs true".
std::string differing_keys(const nlohmann::json& found, const nlohmann::json& needed);

/// A JSON value and its pointer. Cheap to copy; the document must outlive it.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& value, std::string origin, std::string pointer = "");

  /// Checks that this is an object whose keys are all among `known`.
  void allow_only(const std::vector<std::string>& known) const;
  bool has(const std::string& key) const;
  /// Throws when the key is missing.
  JsonReader at(const std::string& key) const;
  /// Elements of an array; throws on anything else.
  std::vector<JsonReader> elements() const;
  /// The same of an array of strings.
  std::vector<std::string> strings() const;
  /// Keys and values of an object, in key order; throws on anything else.
  std::vector<std::pair<std::string, JsonReader>> items() const;

  std::string string() const;
  bool boolean() const;
  double finite() const;        ///< a number; NaN and infinity are refused
  double non_negative() const;  ///< finite and >= 0
  std::int64_t integer() const;
  const nlohmann::json& value() const { return *value_; }

  /// Throws Error{usage}: "origin: /pointer: found ..., allowed ...".
  [[noreturn]] void fail(const std::string& found, const std::string& allowed) const;

 private:
  void expect_object() const;
  std::string shown() const;  ///< the value as text, shortened to fit an error line

  const nlohmann::json* value_;
  std::string origin_;
  std::string pointer_;
};

}  // namespace wt
