// Where a number comes from. Every number that can reach a plan or a report carries one of these.
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
/// Throws Error{usage} on any other word.
Evidence evidence_from_string(const std::string& word);

/// Shares or amounts by kind, index = Evidence.
using EvidenceShares = std::array<double, 4>;
/// All of it on one kind.
EvidenceShares only(Evidence kind, double amount = 1);

struct Provenance {
  Evidence kind = Evidence::assumed;
  std::string source;                 ///< profile and sample count, citation, formula, or who assumed it and why
  std::optional<Evidence> root = {};  ///< of derived: what it follows from; none = kind
  Evidence root_kind() const { return root.value_or(kind); }
};

/// "KIND: source"
std::string to_string(const Provenance& provenance);
/// All of them, "; " between two.
std::string to_string(const std::vector<Provenance>& provenances);
/// The weakest kind among them; assumed if there are none.
Evidence weakest(const std::vector<Provenance>& provenances);

/// The text "KIND: source" at a key. Throws Error{usage} for any other, or where nothing is after the colon.
Provenance read_source(YamlMap& map, const std::string& key = "source");
/// One such text or a list of them.
std::vector<Provenance> read_sources(YamlMap& map, const std::string& key = "source");

}  // namespace wt
