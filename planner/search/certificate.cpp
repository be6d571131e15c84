// Verifies a search's certificate from its candidates and groups alone.
#include <cmath>

#include "planner/search/search.hpp"

namespace wt {

std::vector<std::string> check_certificate(const SearchResult& r) {
  const Certificate& c = r.certificate;
  std::vector<std::string> wrong;
  std::int64_t infeasible = 0, bounded = 0, simulated = 0, claimed_infeasible = 0;
  bool reached = false;
  const auto bound = [&](const std::string& name, double least) {
    if (least < c.bound) wrong.push_back(name + " may be below the bound");
    if (c.proved && least < c.incumbent) wrong.push_back(name + " may beat an incumbent that is called proved");
  };
  for (const UnopenedGroup& group : r.groups) {
    (group.fate == Fate::infeasible ? infeasible : bounded) += group.members;
    if (group.fate == Fate::simulated) wrong.push_back(group.layout.name() + " is a group and called simulated");
    if (group.fate == Fate::bounded) bound("a layout that computes as " + group.layout.name(), group.least);
  }
  for (const Candidate& candidate : r.candidates) {
    if (candidate.fate == Fate::infeasible) {
      ++infeasible;
      if (candidate.reason.empty()) wrong.push_back(candidate.layout.name() + " is infeasible without a reason");
    } else if (candidate.fate == Fate::simulated) {
      ++simulated;
      if (candidate.value < c.incumbent) wrong.push_back(candidate.layout.name() + " beats the incumbent");
      if (candidate.value == c.incumbent) reached = true;
      if (candidate.value < c.bound) wrong.push_back(candidate.layout.name() + " is below the bound");
    } else {
      ++bounded;
      bound(candidate.layout.name(), candidate.least);
    }
  }
  for (const auto& [reason, count] : c.infeasible) claimed_infeasible += count;
  if (infeasible != claimed_infeasible || bounded != c.bounded || simulated != c.simulated ||
      c.enumerated != infeasible + bounded + simulated)
    wrong.push_back("the counts are not those of the candidates");
  if (!reached) wrong.push_back("no simulated layout has the incumbent's step");
  if (std::abs(c.gap - (c.incumbent / c.bound - 1)) > 1e-12) wrong.push_back("the gap is not incumbent / bound - 1");
  if (c.proved && c.gap != 0) wrong.push_back("proved with a gap");
  return wrong;
}

}  // namespace wt
