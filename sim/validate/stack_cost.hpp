// Prices of the step program on a GPU and a stack of which only published measurements are known: the models behind
// `windtunnel validate runs`, op by op. What overlaps with what is the replay's business; the step model's other
// constants (exposed shares, once a step) have no part in it.
#pragma once
#include <string>

#include "configs/spec/cluster.hpp"
#include "configs/spec/stack.hpp"
#include "sim/machine/op_cost.hpp"
#include "sim/validate/runs.hpp"

namespace wt {

class StackCost : public OpCost {
 public:
  /// Fits everything of the reference (two seconds). Throws Error{usage} where the cluster's GPU has no data sheet.
  StackCost(const ClusterSpec& cluster, const StackSpec& stack, const RunReference& reference);

  Price item(const WorkItem& item, double rows) const override;
  /// Its items, or the host that launches them: whichever is longer, blended.
  Price segment(const Op& op, double rows) const override;
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;
  bool synchronous_host() const override { return false; }
  /// None: the factors on computation were fitted to the times of whole runs, in which communication slowed it already.
  CommunicationSlowdown communication_slowdown() const override { return {}; }

 private:
  Price price(double seconds) const;

  ClusterSpec cluster_;
  GpuTimes gpu_;
  RunFabric fabric_;
  DataSheet sheet_;
  RunRow run_;  ///< the cluster in the words of a published run
  StepConstants constants_;
  bool ampere_attention_;
  double low_ratio_, high_ratio_;  ///< 80 % of measured over predicted
  Evidence evidence_;
};

}  // namespace wt
