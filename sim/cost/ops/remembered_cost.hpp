// Cache of op times: a search asks the same for hundreds of layouts, which differ in their groups and not in their
// matrices. The key is what an op does, not which op it is. For one thread. Size: about 200 bytes for each time, and 8
// for each expert of a rank.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/cost/ops/wrapped_cost.hpp"

namespace wt {

class RememberedCost : public WrappedCost {
 public:
  /// `cost` must outlive it, and give the same answer to the same question.
  explicit RememberedCost(const OpCost& cost) : WrappedCost(cost) {}

  using WrappedCost::segment;
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;

 private:
  struct Segment {
    Action action;
    Direction direction;
    Group group;
    std::vector<WorkItem> work;
    double rows, clock;
    std::vector<double> by_expert;
    TimeEstimate estimate;
  };
  struct Transfer {
    OpKind kind;
    double bytes;
    std::int64_t ranks, nodes;
    CollectiveEstimate estimate;
  };

  std::unique_ptr<OpCost> around(const OpCost& theirs, std::size_t /*kind*/) const override {
    return std::make_unique<RememberedCost>(theirs);
  }

  mutable std::unordered_multimap<std::uint64_t, Segment> segments_;  ///< by hash
  mutable std::unordered_multimap<std::uint64_t, Transfer> transfers_;
};

}  // namespace wt
