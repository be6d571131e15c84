// Where a number comes from. Every number in a plan or a report carries a Provenance.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace wt {

class YamlMap;

/// From the strongest to the weakest.
enum class Evidence { measured, published, derived, assumed };

std::string to_string(Evidence kind);
/// Throws Error{usage} for any other word.
Evidence evidence_from_string(const std::string& word);

/// Shares or amounts by kind of evidence; the index is Evidence.
using EvidenceShares = std::array<double, 4>;
/// The whole amount on one kind.
EvidenceShares only(Evidence kind, double amount = 1);

struct Provenance {
  Evidence kind = Evidence::assumed;
  std::string source;                 ///< profile and sample count, citation, formula, or who assumed it and why
  std::optional<Evidence> root = {};  ///< for derived: evidence of the inputs; none = kind
  Evidence root_kind() const { return root.value_or(kind); }
};

/// "KIND: source"
std::string to_string(const Provenance& provenance);
/// Joined by "; ".
std::string to_string(const std::vector<Provenance>& provenances);
/// The weakest kind; assumed for an empty list.
Evidence weakest(const std::vector<Provenance>& provenances);

/// Reads "KIND: source" at a key. Throws Error{usage} for other text, or an empty source.
Provenance read_source(YamlMap& map, const std::string& key = "source");
/// Reads one such text or a list of them.
std::vector<Provenance> read_sources(YamlMap& map, const std::string& key = "source");

}  // namespace wt
