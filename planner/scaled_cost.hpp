// Prices with a factor on them: the "what if the GPUs were slower, the network further away" of sensitivities.
#pragma once
#include "configs/spec/study.hpp"
#include "sim/machine/op_cost.hpp"

namespace wt {

/// Computation at scale.compute_rate times the speed, latencies of collectives times scale.network_latency. Bandwidths
/// are the cluster's: search_problem scales them.
class ScaledCost : public OpCost {
 public:
  /// `cost` must outlive it.
  ScaledCost(const OpCost& cost, const ScaleSpec& scale) : cost_(cost), scale_(scale) {}

  Price item(const WorkItem& item, double rows) const override { return faster(cost_.item(item, rows)); }
  Price segment(const Op& op, double rows) const override { return faster(cost_.segment(op, rows)); }
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override {
    CollectivePrice price = cost_.collective(kind, bytes, ranks, nodes);
    price.latency_s *= scale_.network_latency;
    price.cpu_s /= scale_.compute_rate;
    return price;
  }
  bool synchronous_host() const override { return cost_.synchronous_host(); }
  CommunicationSlowdown communication_slowdown() const override { return cost_.communication_slowdown(); }

 private:
  Price faster(Price price) const { return price *= 1 / scale_.compute_rate; }

  const OpCost& cost_;
  ScaleSpec scale_;
};

}  // namespace wt
