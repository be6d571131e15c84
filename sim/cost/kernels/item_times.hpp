// Times of a step program's work items on a GPU by published times of kernels (kernel_times.hpp), in the parts that a
// stack's constants tell apart. How far a framework's kernels stay behind benchmarks is its stack's business
// (sim/cost/stacks/step_model.hpp).
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/stack.hpp"
#include "sim/cost/kernels/kernel_times.hpp"
#include "sim/cost/op_cost.hpp"

namespace wt {

/// Which kernels a run takes.
struct KernelChoice {
  double relative_rate = 1;  ///< of products: 2 = fp8
  AttentionKernels attention = AttentionKernels::flash2;
};

/// Seconds of one item. Of attention that is not fused, two parts.
struct ItemTime {
  double products_s = 0, attention_s = 0, memory_s = 0;
  double sum_s() const { return products_s + attention_s + memory_s; }
};

/// Which kinds of kernels were measured on processors like a GPU's: of its generation, as many. The others are scaled
/// from other GPUs by the data sheet.
struct MeasuredKinds {
  bool products = false, attention = false, memory = false;
};

class ItemTimes {
 public:
  explicit ItemTimes(std::shared_ptr<const KernelTimes> kernels) : kernels_(std::move(kernels)) {}
  explicit ItemTimes(const std::vector<KernelRow>& rows) : ItemTimes(std::make_shared<KernelTimes>(rows)) {}

  /// Unlike groups of a product take no less than equal ones; a backward product is two.
  ItemTime item(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice, const DataSheet& gpu) const;
  PriceBasis explain(const WorkItem& item, const DataSheet& gpu) const;
  MeasuredKinds measured_on(const DataSheet& gpu) const;
  /// KernelTimes::carried_over_bounds
  std::pair<double, double> carried_over_bounds(const DataSheet& gpu) const {
    return kernels_->carried_over_bounds(gpu);
  }

 private:
  double products_s(const WorkItem& item, const BoundRows& rows, double relative_rate, const DataSheet& gpu) const;
  double product_s(double m, double n, double k, double relative_rate, const DataSheet& gpu) const;

  std::shared_ptr<const KernelTimes> kernels_;
  mutable std::map<std::tuple<std::string, double, double, double, double>, double> products_;  ///< asked for before
  mutable std::map<std::tuple<std::string, AttentionKernels, Pass>, double> attention_factors_;
};

}  // namespace wt
