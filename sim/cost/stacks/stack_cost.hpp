// Times of the step program on GPUs: what benchmarks say of kernels and collectives (measured on this machine first,
// published next), as a stack uses them. What overlaps with what is the replay's business. Intervals are of the ops
// alone; what whole steps are off by comes on top (step_intervals.hpp).
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "sim/cost/kernels/own_ratios.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/cost/stacks/benchmark_times.hpp"
#include "sim/cost/stacks/step_constants.hpp"

namespace wt {

/// What a step model says of one stack on one GPU.
struct StackUse {
  StepTraits traits;
  StepConstants constants;
  Evidence evidence = Evidence::derived;  ///< published: there are steps of this stack, and of this chip
};
StackUse stack_use(const StepModel& steps, const StepTraits& traits);

/// Of the cluster's own kind of nodes. Throws Error{usage} where their GPU has none.
DataSheet sheet_of(const ClusterSpec& cluster);

/// Whether an op is of embedding or output projection, which frameworks keep in 16 bits.
bool at_ends(const Op& op);

class StackCost : public OpCost {
 public:
  /// Every kind of the cluster's nodes. Throws Error{usage} where a GPU has no data sheet or no products in one of the
  /// formats, or the cluster names a fabric of which no time was published.
  StackCost(const ClusterSpec& cluster, const StackSpec& stack, const StepModel& steps, const BenchmarkTimes& times,
            const Precisions& precisions = {});
  /// Nodes of the cluster's own kind, with these constants.
  StackCost(const ClusterSpec& cluster, StackUse use, BenchmarkTimes times, const Precisions& precisions = {});

  const MachineTraits& traits() const override { return traits_; }
  using OpCost::segment;
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override;
  /// Its items. Where traces of this machine say what the op takes, that.
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;
  CollectiveEstimate row_exchange(CollectiveEstimate estimate, Dispatcher dispatcher, double row_bytes,
                                  std::int64_t nodes) const override;
  double launch_s(const Op& op, const Layout& layout) const override;
  double issued_s(double gpu_s, double launch_s) const override;
  TimeBasis explain(const WorkItem& item, const BoundRows& rows) const override;
  const OpCost& on(std::size_t kind) const override {
    return kind == 0 || others_.empty() ? *this : *others_.at(kind - 1);
  }

 private:
  TimeEstimate estimate(double seconds, Evidence root) const;
  /// A kind of kernel's: what was scaled from other GPUs is derived.
  Evidence root_of(bool measured) const {
    return measured ? use_.evidence : std::max(use_.evidence, Evidence::derived);
  }
  bool narrow(const WorkItem& item) const;  ///< a product of fewer than 16 bits
  TimeEstimate item_of(const WorkItem& item, const BoundRows& rows,
                       bool wide) const;  ///< wide: in 16 bits whatever the run
  std::optional<TimeEstimate> host_estimate(const WorkItem& item, const BoundRows& rows) const;

  StackUse use_;
  BenchmarkTimes times_;
  MachineTraits traits_;
  CollectiveMachine machine_;
  DataSheet sheet_;
  MeasuredKinds measured_;
  OwnRatios own_;                                         ///< of what was measured on this machine
  KernelChoice choice_;                                   ///< in the layers
  std::vector<std::shared_ptr<const StackCost>> others_;  ///< by ClusterSpec::others
};

}  // namespace wt
