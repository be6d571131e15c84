// Times of the step program's ops on GPUs: benchmarks of kernels and collectives (measured on this machine first,
// published next), with the constants of a stack. The replay decides what overlaps. Intervals are of the ops alone;
// step_intervals.hpp adds the error of whole steps.
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

/// The step model of one stack on one GPU.
struct StackUse {
  StepTraits traits;
  StepConstants constants;
  Evidence evidence = Evidence::derived;  ///< published: steps of this stack and of this chip were measured
};
StackUse stack_use(const StepModel& steps, const StepTraits& traits);

/// Data sheet of the cluster's own kind of nodes (kind 0). Throws Error{usage} if their GPU has none.
DataSheet sheet_of(const ClusterSpec& cluster);

/// Whether an op belongs to embedding or output projection, which frameworks keep in 16 bits.
bool at_ends(const Op& op);

class StackCost : public OpCost {
 public:
  /// For every kind of the cluster's nodes. Throws Error{usage} if a GPU has no data sheet or no products in one of the
  /// formats, or if the cluster names a fabric without published times.
  StackCost(const ClusterSpec& cluster, const StackSpec& stack, const StepModel& steps, const BenchmarkTimes& times,
            const Precisions& precisions = {});
  /// For the cluster's own kind of nodes (kind 0), with these constants.
  StackCost(const ClusterSpec& cluster, StackUse use, BenchmarkTimes times, const Precisions& precisions = {});

  const MachineTraits& traits() const override { return traits_; }
  using OpCost::segment;
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override;
  /// Time of the op's items, or the time in traces of this machine if there are any.
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
  /// Evidence of one kind of kernels: times scaled from other GPUs are derived.
  Evidence root_of(bool measured) const {
    return measured ? use_.evidence : std::max(use_.evidence, Evidence::derived);
  }
  bool narrow(const WorkItem& item) const;  ///< whether it is a product of fewer than 16 bits
  TimeEstimate item_of(const WorkItem& item, const BoundRows& rows,
                       bool wide) const;  ///< wide: always in 16 bits
  std::optional<TimeEstimate> host_estimate(const WorkItem& item, const BoundRows& rows) const;

  StackUse use_;
  BenchmarkTimes times_;
  MachineTraits traits_;
  CollectiveMachine machine_;
  DataSheet sheet_;
  MeasuredKinds measured_;
  OwnRatios own_;                                         ///< from measurements of this machine
  KernelChoice choice_;                                   ///< kernels of the layers
  std::vector<std::shared_ptr<const StackCost>> others_;  ///< by ClusterSpec::others
};

}  // namespace wt
