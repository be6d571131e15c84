#include "configs/files/study_assignments.hpp"

#include <set>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/study_keys.hpp"

namespace wt {
namespace {

/// Only the assignments that replace the whole cluster or model.
Assignments named_ones(Assignments assignments) {
  std::erase_if(assignments, [](const auto& one) { return one.first != "cluster" && one.first != "model"; });
  return assignments;
}

}  // namespace

KeyValuesOf parse_assignment(const std::string& text, bool several) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw_usage("{}: found '{}', needs {}", several ? "--sweep" : "--set", text, several ? "key=a,b,c" : "key=value");
  KeyValuesOf out{text.substr(0, at), {}};
  int depth = 0;
  std::string value;
  for (char c : text.substr(at + 1)) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (several && c == ',' && depth == 0) {
      out.values.push_back(value);
      value.clear();
    } else {
      value += c;
    }
  }
  out.values.push_back(value);
  for (const std::string& one : out.values)
    if (one.empty()) throw_usage("{}: found an empty value in '{}'", several ? "--sweep" : "--set", text);
  return out;
}

Assignments assignments_of(const std::vector<KeyValuesOf>& settings) {
  Assignments out;
  for (const KeyValuesOf& setting : settings) out.emplace_back(setting.key, setting.values.at(0));
  return out;
}

StudySpec assigned_study(const std::string& text, const std::string& origin, const Assignments& assignments) {
  const auto refuse = [&](const std::string& key, const std::string& unknown, const std::set<std::string>& asked) {
    const std::string base = set_study_keys(text, named_ones(assignments), origin);
    std::optional<SuggestedKey> meant;
    try {
      meant = suggested_key(key, base, origin, asked);
      if (!meant) meant = suggested_key(unknown, base, origin, asked);
    } catch (const Error&) {  // without the other assignments the study may be invalid: no hint
    }
    throw_usage("{}: unknown key{}", key,
                meant
                    ? fmt::format("; did you mean '{}' ({})?", meant->key, meant->file)
                    : fmt::format(" of the study, its cluster and its model; their keys are in {} and in docs/files.md",
                                  origin));
  };
  std::set<std::string> asked;
  StudySpec study;
  try {
    study = study_from_text(set_study_keys(text, assignments, origin),
                            assignments.empty() ? origin : origin + " with --set or --sweep", &asked);
  } catch (const UnknownKey& e) {
    for (const auto& [key, value] : assignments)
      if (key == e.key() || key.starts_with(e.key() + ".")) refuse(key, e.key(), e.asked());
    throw;
  }
  for (const auto& [key, value] : assignments)  // the reader of a config.json accepts unknown keys
    if (key.starts_with("model.") && !asked.contains(key)) refuse(key, key, asked);
  return study;
}

}  // namespace wt
