// Prices with a factor on them: the "what if the GPUs were slower, the network further away" of sensitivities.
#pragma once
#include "configs/spec/study.hpp"
#include "sim/machine/op_cost.hpp"

namespace wt {

/// FLOP a byte from which arithmetic limits a product or attention, between the ridges of A100 (153), H200 (206) and H100
/// (295): peak over memory bandwidth of their data sheets.
inline constexpr double kComputeBoundIntensity = 200;

/// Computation at scale.compute_rate times the speed, products and attention that arithmetic limits also at scale.clock
/// times, latencies of collectives times scale.network_latency. Bandwidths are the cluster's: search_problem scales them.
class ScaledCost : public OpCost {
 public:
  /// `cost` must outlive it.
  ScaledCost(const OpCost& cost, const ScaleSpec& scale) : cost_(cost), scale_(scale) {}

  Price item(const WorkItem& item, const BoundRows& rows) const override {
    return faster(cost_.item(item, rows), compute_bound(item, rows.sum) ? 1 : 0);
  }
  Price segment(const Op& op, const BoundRows& rows) const override {
    double all_s = 0, bound_s = 0;
    if (scale_.clock != 1)
      for (const WorkItem& item : op.work) {
        const double seconds = cost_.item(item, rows.sum).seconds;  // shares that do not hang on how rows fall on experts
        all_s += seconds;
        if (compute_bound(item, rows.sum)) bound_s += seconds;
      }
    return faster(cost_.segment(op, rows), all_s > 0 ? bound_s / all_s : 0);
  }
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override {
    CollectivePrice price = cost_.collective(kind, bytes, ranks, nodes);
    price.latency_s *= scale_.network_latency;
    price.cpu_s /= scale_.compute_rate;
    return price;
  }
  bool synchronous_host() const override { return cost_.synchronous_host(); }
  CommunicationSlowdown communication_slowdown() const override { return cost_.communication_slowdown(); }
  double crowding(std::int64_t ranks) const override { return cost_.crowding(ranks); }

 private:
  static bool compute_bound(const WorkItem& item, double rows) {
    const bool multiplies = item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm || item.kernel == Kernel::attention;
    return multiplies && item.flops(rows) > kComputeBoundIntensity * item.bytes(rows);
  }
  /// `bound`: share of the time that arithmetic limits.
  Price faster(Price price, double bound) const { return price *= (bound / scale_.clock + (1 - bound)) / scale_.compute_rate; }

  const OpCost& cost_;
  ScaleSpec scale_;
};

}  // namespace wt
