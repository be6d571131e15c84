// Which node is behind slow all-reduces between pairs of nodes? A pair is as slow as the slower of its ends, so one
// fast pair clears both of its nodes; a node none of whose pairs is fast, and which alone explains one of them, is
// guilty.
#pragma once
#include <string>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

/// A pair on one rail, its worst payload.
struct JudgedPair {
  std::string a, b, rail;
  std::int64_t bytes = 0;
  double slowdown = 0;  ///< over the median of all pairs and rails at this payload
  double p = 1;         ///< as Deviation::p
  bool slow = false;    ///< all that solve_pairs reads of the judgement
};

/// Every pair and rail once, against all pairs and rails of the same payload (rails of one fleet are alike). `slow`
/// where p is below `most_p` and the slowdown at least `floor`. A node is in two of n pairs of a ring,
/// so with fewer than five nodes on one rail a slow one hides: half of the pairs are slow.
std::vector<JudgedPair> judge_pairs(const std::vector<LinkObservation>& links, double usual_spread, double most_p,
                                    double floor);

struct LinkFinding {
  enum class Kind {
    node,       ///< `node` is slow on this rail with all of its partners
    ambiguous,  ///< no pair tells `node` from `other` and from what lies between; "" where other is cleared
    cable,      ///< both ends are fast with others: what lies between `node` and `other`
    rail,       ///< most pairs of this rail are slow: switch or configuration, no node
  } kind = Kind::node;
  std::string node, other, rail;
  double slowdown = 0;                 ///< the least of its slow pairs
  double p = 1;                        ///< the largest of its pairs
  std::size_t fast_partners = 0;       ///< of a guilty node, partners that are fast with others
  std::vector<JudgedPair> pairs = {};  ///< evidence
};

/// The nodes, cables, rails and doubts behind the slow pairs, rail by rail.
std::vector<LinkFinding> solve_pairs(const std::vector<JudgedPair>& pairs);

}  // namespace wt
