// The plan's simple alternative: the best layout with the fewest mechanisms, which has more measured relatives and less
// that can go wrong. A layout that nobody has run is passed over for it, unless its lead is larger than the extra width
// of its interval.
#pragma once
#include <optional>
#include <string>

#include "planner/search/search.hpp"
#include "sim/cost/stacks/measured_runs.hpp"

namespace wt {

/// FSDP or HSDP with expert parallelism: no tensor, pipeline or context groups, and no exchanges that overlap another
/// microbatch.
bool is_simple(const Layout& layout);

/// The best simple layout of the problem, within a few simulations. Empty if none fits.
std::optional<Candidate> simple_alternative(const SearchProblem& problem);

/// The share of its objective by which a layout is ahead of the simple one (negative: behind), and by which its step's
/// interval is wider: half of the 80 % interval's logarithm, as a ratio.
struct Lead {
  double ahead = 0, wider = 0;
  double nearest = 0;  ///< doublings to the nearest measured run (doublings_apart)
  /// No measured run is like it, and it is ahead by less than its interval is wider.
  bool is_unsure() const { return nearest > kFarAway && ahead < wider; }
};
/// Both were simulated.
Lead lead_over(const Candidate& simple, const Candidate& layout, const RunFeatures& of,
               const std::vector<MeasuredRun>& runs);

}  // namespace wt
