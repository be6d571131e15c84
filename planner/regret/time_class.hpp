// A class of times whose errors are common: one kind of kernel, one kind of collective within or between nodes, or
// several of these. A scenario moves one class to an end of its interval and keeps the other times.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/ops/step_ratios.hpp"
#include "sim/cost/ops/wrapped_cost.hpp"

namespace wt {

struct TimeClass {
  std::string name;  ///< "grouped_gemm", "all_gather between nodes", "all kernels"
  std::set<Kernel> kernels = {};
  std::set<std::pair<OpKind, bool>> collectives = {};  ///< second: whether the group spans nodes
  bool slowdown = false;                               ///< the slowdown of computation by communication
  bool empty() const { return kernels.empty() && collectives.empty() && !slowdown; }
  bool single() const { return kernels.size() + collectives.size() + (slowdown ? 1 : 0) == 1; }
};

/// An end of a time's 80 % interval.
enum class IntervalEnd { low, high };

/// Times with one class at an end of its interval. A segment changes by the shares of its items.
class ClassAtEnd : public WrappedCost {
 public:
  /// `cost` must outlive the object. The ratios of `off_by` for nodes of `kind` widen its intervals.
  ClassAtEnd(const OpCost& cost, TimeClass moved, IntervalEnd end, StepRatiosByKind off_by = {}, std::size_t kind = 0)
      : WrappedCost(cost),
        moved_(std::move(moved)),
        end_(end),
        off_by_(std::move(off_by)),
        kind_(kind),
        traits_(moved_traits()) {}

  const MachineTraits& traits() const override { return traits_; }

  using WrappedCost::segment;
  TimeEstimate item(const WorkItem& item, const BoundRows& rows) const override;
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;

 private:
  MachineTraits moved_traits() const;
  double factor(const WorkItem& item, TimeEstimate estimate) const;
  std::unique_ptr<OpCost> around(const OpCost& theirs, std::size_t kind) const override {
    return std::make_unique<ClassAtEnd>(theirs, moved_, end_, off_by_, kind);
  }

  TimeClass moved_;
  IntervalEnd end_;
  StepRatiosByKind off_by_;
  std::size_t kind_;
  MachineTraits traits_;
};

/// Records the times that are asked for in `asked`.
class AskedTimes : public WrappedCost {
 public:
  /// Both must outlive the object.
  AskedTimes(const OpCost& cost, TimeClass& asked) : WrappedCost(cost), asked_(asked) {}

  using WrappedCost::segment;
  TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;

 private:
  std::unique_ptr<OpCost> around(const OpCost& theirs, std::size_t /*kind*/) const override {
    return std::make_unique<AskedTimes>(theirs, asked_);
  }

  TimeClass& asked_;
};

/// Each kind of kernel and collective in `all` as a class of its own.
std::vector<TimeClass> single_classes(const TimeClass& all);
/// All kernels, all collectives within a node, and all between nodes; each only if it has several kinds.
std::vector<TimeClass> joint_classes(const TimeClass& all);

}  // namespace wt
