// Base class for times made from those of another OpCost: it forwards every call that a derived class does not
// override.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

class WrappedCost : public OpCost {
 public:
  /// `cost` must outlive it.
  explicit WrappedCost(const OpCost& cost) : cost_(cost) {}

  const MachineTraits& traits() const override { return cost_.traits(); }
  using OpCost::segment;
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override { return cost_.item(item, rows); }
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override {
    return cost_.segment(op, rows, clock);
  }
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override {
    return cost_.collective(kind, bytes, ranks, nodes);
  }
  const OpCost& on(std::size_t kind) const final {
    const OpCost& theirs = cost_.on(kind);
    if (&theirs == &cost_) return *this;
    std::unique_ptr<OpCost>& other = others_[kind];
    if (!other) other = around(theirs, kind);
    return *other;
  }
  CollectiveEstimate row_exchange(CollectiveEstimate estimate, Dispatcher dispatcher, double row_bytes,
                                  std::int64_t nodes) const final {
    return cost_.row_exchange(estimate, dispatcher, row_bytes, nodes);
  }
  double launch_s(const Op& op, const Layout& layout) const final { return cost_.launch_s(op, layout); }
  double issued_s(double gpu_s, double launch_s) const final { return cost_.issued_s(gpu_s, launch_s); }
  TimeBasis explain(const WorkItem& item, const BoundRows& rows) const final { return cost_.explain(item, rows); }

 protected:
  const OpCost& wrapped() const { return cost_; }
  /// The same wrapper around `theirs`, the times of another kind of node, which outlive it.
  virtual std::unique_ptr<OpCost> around(const OpCost& theirs, std::size_t kind) const = 0;

 private:
  const OpCost& cost_;
  mutable std::map<std::size_t, std::unique_ptr<OpCost>> others_;  ///< by kind of node
};

}  // namespace wt
