// Prices of the step program on a GPU and a stack of which only published measurements are known: the models behind
// `windtunnel validate runs`, op by op. What overlaps with what is the replay's business; the step model's other
// constants (exposed shares, once a step) have no part in it.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "configs/spec/cluster.hpp"
#include "configs/spec/stack.hpp"
#include "sim/cost/op_cost.hpp"
#include "sim/validate/runs.hpp"

namespace wt {

/// What a step model says of one stack on one GPU.
struct StackConstants {
  StepConstants constants;
  bool ampere_attention = false, separate_reduce_group = false;
  std::pair<double, double> ratios = {1, 1};  ///< 80 % of measured over predicted
  Evidence evidence = Evidence::derived;      ///< published: this stack on this GPU
};

class StackCost : public OpCost {
 public:
  /// Every kind of the cluster's nodes. Fits everything of the reference (two seconds). Throws Error{usage} where the
  /// cluster's GPU has no data sheet.
  StackCost(const ClusterSpec& cluster, const StackSpec& stack, const RunReference& reference);
  /// `run`: the GPU as a published run names it, and its interconnect, unless a machine is given.
  StackCost(const ClusterSpec& cluster, RunRow run, StackConstants constants, std::shared_ptr<const GpuTimes> gpu,
            std::shared_ptr<const CollectiveEstimator> collectives, std::optional<CollectiveMachine> machine = {});

  using OpCost::segment;
  Price item(const WorkItem& item, const BoundRows& rows) const override;
  /// Its items, or the host that launches them: whichever is longer, blended.
  Price segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;
  bool synchronous_host() const override { return false; }
  CommunicationSlowdown communication_slowdown() const override { return published_slowdown(); }
  bool separate_reduce_group() const override { return stack_.separate_reduce_group; }
  const OpCost& on(std::size_t kind) const override {
    return kind == 0 || others_.empty() ? *this : *others_.at(kind - 1);
  }

 private:
  Price price(double seconds) const;
  Price item_of(const WorkItem& item, const BoundRows& rows, bool ends) const;

  ClusterSpec cluster_;
  RunRow run_;
  StackConstants stack_;
  std::shared_ptr<const GpuTimes> gpu_;
  std::shared_ptr<const CollectiveEstimator> collectives_;
  CollectiveMachine machine_;
  DataSheet sheet_;
  double rate_ = 1;                                       ///< of products in the layers
  std::vector<std::shared_ptr<const StackCost>> others_;  ///< by ClusterSpec::others
};

}  // namespace wt
