// The search behind placement: assigns n items to ranks with equal room so that the largest load is smallest, for one
// or several scenarios at once. Loads are normalised to a mean rank load of 1 in every scenario.
#pragma once
#include <cstdint>
#include <vector>

namespace wt::detail {

struct PackProblem {
  int ranks = 0;
  int room = 0;  ///< number of items of each rank
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
/// Lower bound of the largest load: the mean (L1); the pigeonhole principle over the largest items with the smallest as
/// fill (L2, L3, L4); for room 2 the pairing of i-th largest with i-th smallest, which is optimal for one scenario.
double lower_bound(const PackProblem& problem);
/// Longest-processing-time first with the room as limit, then pair swaps to a local optimum, then `kicks` random
/// perturbations, each followed by swaps. Deterministic.
Packing heuristic(const PackProblem& problem, int kicks);

struct Proof {
  Packing best;
  bool exhausted = false;  ///< the whole tree was searched or bounded: best is optimal
  std::int64_t nodes = 0;
};
/// Depth-first branch and bound from an incumbent. Stops at the lower bound or after node_limit nodes (0 = no limit).
Proof branch_and_bound(const PackProblem& problem, const Packing& incumbent, double bound, std::int64_t node_limit);

}  // namespace wt::detail
