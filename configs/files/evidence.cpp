#include "configs/files/evidence.hpp"

#include <algorithm>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

constexpr const char* kWords[] = {"measured", "published", "derived", "assumed"};

constexpr const char* kSourceForms = "needs 'measured: ...', 'published: ...', 'derived: ...' or 'assumed: ...'";

/// `entry`: index of the text in a list.
Provenance source_in(const YamlMap& map, const std::string& key, const std::string& text,
                     std::optional<std::size_t> entry = {}) {
  const std::size_t colon = text.find(':');
  const std::optional<Evidence> kind = enumerator_of<Evidence>(text.substr(0, colon), kWords);
  if (colon == std::string::npos || !kind) map.fail_entry(key, entry, "found '{}', {}", text, kSourceForms);
  const std::size_t source = text.find_first_not_of(" \t\n", colon + 1);
  if (source == std::string::npos)
    map.fail_entry(key, entry, "found '{}', needs to say after the colon where the number is from", text);
  return {*kind, text.substr(source)};
}

}  // namespace

std::string to_string(Evidence kind) { return word_for(kind, kWords); }

Evidence evidence_from_string(const std::string& word) {
  if (const auto kind = enumerator_of<Evidence>(word, kWords)) return *kind;
  throw_usage("evidence: found '{}', allowed measured, published, derived, assumed", word);
}

EvidenceShares only(Evidence kind, double amount) {
  EvidenceShares out{};
  out[static_cast<std::size_t>(kind)] = amount;
  return out;
}

std::string to_string(const Provenance& provenance) { return to_string(provenance.kind) + ": " + provenance.source; }

std::string to_string(const std::vector<Provenance>& provenances) {
  return joined(provenances, "; ", [](const Provenance& each) { return to_string(each); });
}

Evidence weakest(const std::vector<Provenance>& provenances) {
  if (provenances.empty()) return Evidence::assumed;
  Evidence kind = Evidence::measured;
  for (const Provenance& each : provenances) kind = std::max(kind, each.kind);
  return kind;
}

Provenance read_source(YamlMap& map, const std::string& key) { return source_in(map, key, map.text(key)); }

std::vector<Provenance> read_sources(YamlMap& map, const std::string& key) {
  const YAML::Node list = map.node(key);
  if (!list.IsSequence()) return {read_source(map, key)};
  if (list.size() == 0) map.fail(key, "found an empty list, {}", kSourceForms);
  std::vector<Provenance> sources;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].IsScalar()) map.fail_entry(key, i, "found no text, {}, in quotes", kSourceForms);
    sources.push_back(source_in(map, key, list[i].Scalar(), i));
  }
  return sources;
}

}  // namespace wt
