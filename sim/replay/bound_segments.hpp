// Cache of segments bound on nodes of one kind, because layers and ranks repeat them a million times.
// sim/cost/ops/remembered_cost.hpp caches times that many steps use.
#pragma once
#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

struct BoundSegment {
  TimeEstimate estimate;
  int evidence = -1;  ///< index of the binder's evidence; -1 = not set
};

class BoundSegments {
 public:
  explicit BoundSegments(const OpCost& cost) : cost_(cost) {}
  BoundSegment& of(const Op& op, const BoundRows& rows);

 private:
  struct Rows {
    double sum;
    std::vector<double> by_expert;
  };
  struct Less {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      if (a.sum != b.sum) return a.sum < b.sum;
      return std::lexicographical_compare(a.by_expert.begin(), a.by_expert.end(), b.by_expert.begin(),
                                          b.by_expert.end());
    }
  };

  const OpCost& cost_;
  std::unordered_map<const Op*, std::map<Rows, BoundSegment, Less>> segments_;
};

}  // namespace wt
