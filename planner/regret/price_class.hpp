// Prices that are off together: one kind of kernel, one kind of collective within or between nodes, or several of
// these. A class at an end of its interval is the same prices with this one moved there.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/ops/wrapped_cost.hpp"

namespace wt {

struct PriceClass {
  std::string name;  ///< "grouped_gemm", "all_gather between nodes", "all kernels"
  std::set<Kernel> kernels = {};
  std::set<std::pair<OpKind, bool>> collectives = {};  ///< with whether the group spans nodes
  bool slowdown = false;                               ///< what communication takes from the computation beside it
  bool empty() const { return kernels.empty() && collectives.empty() && !slowdown; }
  bool single() const { return kernels.size() + collectives.size() + (slowdown ? 1 : 0) == 1; }
};

/// Of a price's 80 % interval.
enum class IntervalEnd { low, high };

/// A step's prices with one class at an end of its interval. A segment moves by its items' shares.
class ClassAtEnd : public WrappedCost {
 public:
  /// `cost` must outlive it.
  ClassAtEnd(const OpCost& cost, PriceClass moved, IntervalEnd end)
      : WrappedCost(cost), moved_(std::move(moved)), end_(end) {}

  using WrappedCost::segment;
  Price item(const WorkItem& item, const BoundRows& rows) const override;
  Price segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;
  CommunicationSlowdown communication_slowdown() const override;

 private:
  double factor(const WorkItem& item, const Price& price) const;
  std::unique_ptr<OpCost> around(const OpCost& theirs) const override {
    return std::make_unique<ClassAtEnd>(theirs, moved_, end_);
  }

  PriceClass moved_;
  IntervalEnd end_;
};

/// Writes down which prices are asked for.
class AskedPrices : public WrappedCost {
 public:
  /// Both must outlive it.
  AskedPrices(const OpCost& cost, PriceClass& asked) : WrappedCost(cost), asked_(asked) {}

  using WrappedCost::segment;
  Price segment(const Op& op, const BoundRows& rows, Clock clock) const override;
  CollectivePrice collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const override;

 private:
  std::unique_ptr<OpCost> around(const OpCost& theirs) const override {
    return std::make_unique<AskedPrices>(theirs, asked_);
  }

  PriceClass& asked_;
};

/// Each kind of kernel and collective of `all` by itself.
std::vector<PriceClass> single_classes(const PriceClass& all);
/// All kernels; all collectives within a node; all between nodes: where there are several of each.
std::vector<PriceClass> joint_classes(const PriceClass& all);

}  // namespace wt
