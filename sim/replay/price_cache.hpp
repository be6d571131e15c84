// Caches OpCost: layers and ranks repeat the same questions.
#pragma once
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// A segment's price, and the binder's index of its evidence.
struct SegmentPrice {
  Price price;
  int evidence = -1;
};

class PriceCache {
 public:
  explicit PriceCache(const OpCost& cost) : cost_(cost) {}
  SegmentPrice& segment(const Op& op, const BoundRows& rows);
  const CollectivePrice& collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes);

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
  std::unordered_map<const Op*, std::map<Rows, SegmentPrice, Less>> segments_;
  std::map<std::tuple<OpKind, double, std::int64_t, std::int64_t>, CollectivePrice> collectives_;
};

}  // namespace wt
