// Prices with a factor on them: the "what if the GPUs were slower, the network further away" of sensitivities.
#pragma once
#include <map>
#include <memory>

#include "configs/spec/study.hpp"
#include "sim/cost/op_cost.hpp"

namespace wt {

/// Computation at scale.compute_rate times the speed, products and attention that arithmetic limits also at scale.clock
/// times, latencies of collectives times scale.network_latency. Bandwidths are the cluster's: search_problem scales
/// them.
class ScaledCost : public OpCost {
 public:
  /// `cost` must outlive it.
  ScaledCost(const OpCost& cost, const ScaleSpec& scale) : cost_(cost), scale_(scale) {}

  using OpCost::segment;
  Price item(const WorkItem& item, const BoundRows& rows) const override {
    return faster(cost_.item(item, rows), Clock{scale_.clock}.factor(item, rows.sum));
  }
  Price segment(const Op& op, const BoundRows& rows, Clock clock) const override {
    return faster(cost_.segment(op, rows, {clock.speed * scale_.clock}), 1);
  }
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override {
    CollectivePrice price = cost_.collective(kind, bytes, ranks, nodes);
    price.latency_s *= scale_.network_latency;
    price.cpu_s /= scale_.compute_rate;
    return price;
  }
  const OpCost& on(std::size_t kind) const override {
    const OpCost& theirs = cost_.on(kind);
    return &theirs == &cost_ ? *this
                             : *others_.try_emplace(kind, std::make_unique<ScaledCost>(theirs, scale_)).first->second;
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
  Price faster(Price price, double factor) const { return price *= factor / scale_.compute_rate; }

  const OpCost& cost_;
  ScaleSpec scale_;
  mutable std::map<std::size_t, std::unique_ptr<ScaledCost>> others_;  ///< by kind of node
};

}  // namespace wt
