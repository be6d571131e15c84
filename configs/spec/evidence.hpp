// Where a number comes from. Every number that can reach a plan or a report carries one of these.
#pragma once
#include <string>

namespace wt {

enum class Evidence { measured, published, derived, assumed };

std::string to_string(Evidence kind);
/// Throws Error{usage} on any other word.
Evidence evidence_from_string(const std::string& word);

struct Provenance {
  Evidence kind = Evidence::assumed;
  std::string source;  ///< profile and sample count, citation, formula, or who assumed it and why
};

}  // namespace wt
