// Where a number comes from. Every number that can reach a plan or a report carries one of these.
#pragma once
#include <array>
#include <optional>
#include <string>

namespace wt {

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

}  // namespace wt
