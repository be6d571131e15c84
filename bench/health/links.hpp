// Infers which node causes slow all-reduces between pairs of nodes. A pair is as slow as the slower of its ends. So one
// fast pair clears both of its nodes; a node without a fast pair is the cause if a slow pair has no other explanation.
#pragma once
#include <string>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

/// A pair on one rail, with its slowest payload.
struct JudgedPair {
  std::string a, b, rail;
  std::int64_t bytes = 0;
  double slowdown = 0;  ///< over the median of all pairs and rails at this payload
  double p = 1;         ///< as Deviation::p
  bool slow = false;    ///< solve_pairs reads only this
};

/// Every pair and rail once, compared with all pairs and rails at the same payload (rails of one fleet are alike).
/// `slow` where p is below `most_p` and the slowdown is at least `floor`. In a ring a node is in two of n pairs: with
/// fewer than five nodes on one rail, half of the pairs are slow, and a slow node cannot be found.
std::vector<JudgedPair> judge_pairs(const std::vector<LinkObservation>& links, double usual_spread, double most_p,
                                    double floor);

struct LinkFinding {
  enum class Kind {
    node,       ///< `node` is slow on this rail with all of its partners
    ambiguous,  ///< the cause is `node`, `other` or the path between them; `other` is "" where it is cleared
    cable,      ///< both ends are fast with others: the path between `node` and `other`
    rail,       ///< most pairs of this rail are slow: a switch or its configuration, no node
  } kind = Kind::node;
  std::string node, other, rail;
  double slowdown = 0;                 ///< smallest of its slow pairs
  double p = 1;                        ///< largest of its pairs
  std::size_t fast_partners = 0;       ///< for kind node: partners that are fast with others
  std::vector<JudgedPair> pairs = {};  ///< evidence
};

/// The nodes, cables and rails that explain the slow pairs, and ambiguous cases, rail by rail.
std::vector<LinkFinding> solve_pairs(const std::vector<JudgedPair>& pairs);

}  // namespace wt
