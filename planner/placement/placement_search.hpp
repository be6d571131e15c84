// The search behind placement: put n items on equal ranks with equal room so that the largest load is smallest, over
// one or several scenarios at once. Loads are normalised so that the mean rank load is 1 in every scenario.
#pragma once
#include <cstdint>
#include <vector>

namespace wt::detail {

struct PackProblem {
  int ranks = 0;
  int room = 0;  ///< items a rank takes, exactly
  int scenarios = 0;
  std::vector<double> weight;  ///< [item][scenario]
  int items() const { return ranks * room; }
  double at(int item, int scenario) const { return weight[static_cast<std::size_t>(item * scenarios + scenario)]; }
};

struct Packing {
  std::vector<int> rank_of;  ///< by item
  double largest = 0;        ///< max over ranks and scenarios
};

double largest_load(const PackProblem& problem, const std::vector<int>& rank_of);
/// No packing has a smaller largest load: the mean (L1), pigeonhole over the largest items with the smallest filling up
/// (L2, L3, L4), and for room 2 the pairing of i-th largest with i-th smallest, which is optimal for one scenario.
double lower_bound(const PackProblem& problem);
/// Longest-processing-time first with the room as cap, then pair swaps to a local optimum, then `kicks` random
/// perturbations with the same descent. Deterministic.
Packing heuristic(const PackProblem& problem, int kicks);

struct Proof {
  Packing best;
  bool exhausted = false;  ///< the whole tree was searched or bounded away: best is optimal
  std::int64_t nodes = 0;
};
/// Depth-first branch and bound from an incumbent; stops at the lower bound or after node_limit nodes (0 = no limit).
Proof branch_and_bound(const PackProblem& problem, const Packing& incumbent, double bound, std::int64_t node_limit);

}  // namespace wt::detail
