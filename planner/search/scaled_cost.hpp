// Times scaled by factors, for sensitivities such as slower GPUs or a slower network.
#pragma once
#include <memory>

#include "configs/files/study.hpp"
#include "sim/cost/ops/wrapped_cost.hpp"

namespace wt {

/// Divides computing times by scale.compute_rate, also by scale.clock if arithmetic limits a product or attention.
/// Multiplies collective latencies by scale.network_latency. Bandwidths belong to the cluster: search_problem scales
/// them.
class ScaledCost : public WrappedCost {
 public:
  /// `cost` must outlive it.
  ScaledCost(const OpCost& cost, const ScaleSpec& scale) : WrappedCost(cost), scale_(scale) {}

  using WrappedCost::segment;
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override {
    return faster(wrapped().item(item, rows), Clock{scale_.clock}.factor(item, rows.sum));
  }
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override {
    return faster(wrapped().segment(op, rows, {clock.speed * scale_.clock}), 1);
  }
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override {
    CollectiveEstimate estimate = wrapped().collective(kind, bytes, ranks, nodes);
    estimate.latency_s *= scale_.network_latency;
    estimate.cpu_s /= scale_.compute_rate;
    return estimate;
  }

 private:
  TimeEstimate faster(TimeEstimate estimate, double factor) const { return estimate *= factor / scale_.compute_rate; }

  std::unique_ptr<OpCost> around(const OpCost& theirs, std::size_t /*kind*/) const override {
    return std::make_unique<ScaledCost>(theirs, scale_);
  }

  ScaleSpec scale_;
};

}  // namespace wt
