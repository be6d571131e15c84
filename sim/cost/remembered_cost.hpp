// Prices asked for before: a search asks the same of hundreds of layouts, which differ in their groups and not in their
// matrices. The key is what an op does, not which op it is. For one thread; as large as what was asked, about 200 bytes
// a price and 8 for each expert of a rank.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/cost/op_cost.hpp"

namespace wt {

class RememberedCost : public OpCost {
 public:
  /// `cost` must outlive it, and give the same answer to the same question.
  explicit RememberedCost(const OpCost& cost) : cost_(cost) {}

  Price item(const WorkItem& item, const BoundRows& rows) const override { return cost_.item(item, rows); }
  using OpCost::segment;
  Price segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;
  const OpCost& on(std::size_t kind) const override {
    const OpCost& theirs = cost_.on(kind);
    return &theirs == &cost_ ? *this
                             : *others_.try_emplace(kind, std::make_unique<RememberedCost>(theirs)).first->second;
  }
  bool synchronous_host() const override { return cost_.synchronous_host(); }
  CommunicationSlowdown communication_slowdown() const override { return cost_.communication_slowdown(); }
  double crowding(std::int64_t ranks) const override { return cost_.crowding(ranks); }
  bool separate_reduce_group() const override { return cost_.separate_reduce_group(); }
  double tensor_traffic() const override { return cost_.tensor_traffic(); }
  Price once_a_step() const override { return cost_.once_a_step(); }
  PriceBasis explain(const WorkItem& item) const override { return cost_.explain(item); }
  double variation() const override { return cost_.variation(); }

 private:
  struct Segment {
    Action action;
    Direction direction;
    Group group;
    std::vector<WorkItem> work;
    double rows, clock;
    std::vector<double> by_expert;
    Price price;
  };
  struct Transfer {
    OpKind kind;
    double bytes;
    std::int64_t ranks, nodes;
    CollectivePrice price;
  };

  const OpCost& cost_;
  mutable std::unordered_multimap<std::uint64_t, Segment> segments_;  ///< by hash
  mutable std::unordered_multimap<std::uint64_t, Transfer> transfers_;
  mutable std::map<std::size_t, std::unique_ptr<RememberedCost>> others_;  ///< by kind of node
};

}  // namespace wt
