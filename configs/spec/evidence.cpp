#include "configs/spec/evidence.hpp"

#include "configs/spec/support/error.hpp"

namespace wt {

std::string to_string(Evidence kind) {
  switch (kind) {
    case Evidence::measured:
      return "measured";
    case Evidence::published:
      return "published";
    case Evidence::derived:
      return "derived";
    case Evidence::assumed:
      return "assumed";
  }
  return "assumed";
}

Evidence evidence_from_string(const std::string& word) {
  for (Evidence kind : {Evidence::measured, Evidence::published, Evidence::derived, Evidence::assumed})
    if (to_string(kind) == word) return kind;
  throw_error(Code::usage, "evidence: found '{}', allowed measured, published, derived, assumed", word);
}

EvidenceShares only(Evidence kind, double amount) {
  EvidenceShares out{};
  out[static_cast<std::size_t>(kind)] = amount;
  return out;
}

}  // namespace wt
