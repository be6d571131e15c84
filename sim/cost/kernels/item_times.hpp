// Times of a step program's work items on a GPU by published times of kernels (kernel_times.hpp), in the parts that a
// stack's constants tell apart. How far a framework's kernels stay behind benchmarks is its stack's business
// (sim/cost/stacks/step_constants.hpp).
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "configs/files/data_sheet.hpp"
#include "configs/files/precisions.hpp"
#include "configs/files/stack.hpp"
#include "sim/cost/kernels/kernel_times.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// A product's number format on a GPU.
struct ProductFormat {
  double relative_rate = 1;  ///< data_sheet.hpp; 0 = the GPU has no bf16, which a time then refuses
  double element_bytes = 2;
  int halvings = 0;  ///< of 16 bits: 1 = 8 bits, 2 = 4 bits
};
/// Throws Error{usage} where the GPU has no such products.
ProductFormat product_format(NumberFormat format, const DataSheet& gpu);

/// Which kernels a run takes. The defaults are those of 16 bits.
struct KernelChoice {
  KernelChoice() = default;
  /// Throws Error{usage} where the GPU lacks a format, but for TF32: its products of fp32 tensors are then in fp32.
  KernelChoice(const Precisions& precisions, AttentionKernels attention, const DataSheet& gpu);
  /// The same without narrow products, as embedding and output projection have.
  KernelChoice in_16_bits() const;
  /// Whether products of a pass are narrower than 16 bits, some or all.
  bool narrow(Pass pass) const;

  ProductFormat forward, input_gradients, weight_gradients;
  ProductFormat fp32 = {0.5, 4};  ///< of fp32 tensors, whatever the pass
  AttentionKernels attention = AttentionKernels::flash2;
  double attention_rate = 1;
};

/// Seconds of products by the bits of their format.
struct ProductTime {
  double wide_s = 0, fp8_s = 0, fp4_s = 0;  ///< 16 bits or more, 8, 4
  void add(const ProductTime& more, double times = 1) {
    wide_s += times * more.wide_s, fp8_s += times * more.fp8_s, fp4_s += times * more.fp4_s;
  }
  double sum_s() const { return wide_s + fp8_s + fp4_s; }
};

/// Seconds of one item. Of attention that is not fused, two parts.
struct ItemTime {
  ProductTime products = {};
  double attention_s = 0, memory_s = 0;
  double sum_s() const { return products.sum_s() + attention_s + memory_s; }
};

/// Which kinds of kernels were measured on processors like a GPU's: of its generation, as many. The others are scaled
/// from other GPUs by the data sheet.
struct MeasuredKinds {
  bool products = false, attention = false, memory = false;
};

class ItemTimes {
 public:
  explicit ItemTimes(std::shared_ptr<const KernelTimes> kernels) : kernels_(std::move(kernels)) {}

  /// Unlike groups of a product take no less than equal ones; a backward product is two.
  ItemTime item(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice, const DataSheet& gpu) const;
  TimeBasis explain(const WorkItem& item, const DataSheet& gpu) const;
  MeasuredKinds measured_on(const DataSheet& gpu) const;
  /// KernelTimes::carried_over_bounds
  std::pair<double, double> carried_over_bounds(const DataSheet& gpu) const {
    return kernels_->carried_over_bounds(gpu);
  }

 private:
  ProductTime products(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice,
                       const DataSheet& gpu) const;
  double product_s(double m, double n, double k, const ProductFormat& format, const DataSheet& gpu) const;

  std::shared_ptr<const KernelTimes> kernels_;
  mutable std::map<std::tuple<std::string, double, double, double, double, double>, double>
      products_;  ///< asked for before
  mutable std::map<std::tuple<std::string, AttentionKernels, Pass>, double> attention_factors_;
};

}  // namespace wt
