// Times of a step program's work items on a GPU, from published times of kernels (kernel_times.hpp). They are split
// into the parts to which a stack's constants apply. These constants, not this file, say how much slower a framework's
// kernels are than benchmarks (sim/cost/stacks/step_constants.hpp).
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
  double relative_rate = 1;  ///< data_sheet.hpp; 0 = the GPU has no bf16: times throw
  double element_bytes = 2;
  int halvings = 0;  ///< from 16 bits: 1 = 8 bits, 2 = 4 bits
};
/// Throws Error{usage} if the GPU has no such products.
ProductFormat product_format(NumberFormat format, const DataSheet& gpu);

/// Which kernels a run uses. The defaults are those of 16 bits.
struct KernelChoice {
  KernelChoice() = default;
  /// Throws Error{usage} if the GPU lacks a format. Exception: without TF32, products of fp32 tensors run in fp32.
  /// `grouped`: the library of grouped products (StackSpec::grouped_products).
  KernelChoice(const Precisions& precisions, AttentionKernels attention, std::string grouped, const DataSheet& gpu);
  /// The same with all products in 16 bits, as for embedding and output projection.
  KernelChoice in_16_bits() const;
  /// Whether any products of a pass have fewer than 16 bits.
  bool narrow(Pass pass) const;

  ProductFormat forward, input_gradients, weight_gradients;
  ProductFormat fp32 = {0.5, 4};  ///< of fp32 tensors, in every pass
  AttentionKernels attention = AttentionKernels::unnamed;
  double attention_rate = 1;
  std::string grouped = {};  ///< library of grouped products; "" = unknown
};

/// Seconds of products by the bits of their format.
struct ProductTime {
  double wide_s = 0, fp8_s = 0, fp4_s = 0;  ///< 16 bits or more, 8, 4
  void add(const ProductTime& more, double times = 1) {
    wide_s += times * more.wide_s, fp8_s += times * more.fp8_s, fp4_s += times * more.fp4_s;
  }
  double sum_s() const { return wide_s + fp8_s + fp4_s; }
};

/// Seconds of one item. Attention that is not fused has two parts, products and memory.
struct ItemTime {
  ProductTime products = {};
  double attention_s = 0, memory_s = 0;
  double sum_s() const { return products.sum_s() + attention_s + memory_s; }
};

/// Which kinds of kernels were measured on processors like this GPU's: the same generation and number. Times of the
/// other kinds are scaled from other GPUs by the data sheet.
struct MeasuredKinds {
  bool products = false, grouped = false, attention = false, memory = false;
};

class ItemTimes {
 public:
  explicit ItemTimes(std::shared_ptr<const KernelTimes> kernels) : kernels_(std::move(kernels)) {}

  /// Seconds of an item. Unequal groups of a grouped product never take less than equal ones. A backward product is two
  /// products: the gradients of the input and of the weights.
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
  /// Over attention_time_s. Kernels without a name: the geometric mean of the two libraries.
  double attention_factor(Pass pass, AttentionKernels kernels, const DataSheet& gpu) const;
  ProductTime grouped(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice,
                      const DataSheet& gpu) const;
  double product_s(double m, double n, double k, const ProductFormat& format, const DataSheet& gpu) const;

  std::shared_ptr<const KernelTimes> kernels_;
  mutable std::map<std::tuple<std::string, double, double, double, double, double>, double>
      products_;  ///< answers so far
  mutable std::map<std::tuple<std::string, AttentionKernels, Pass>, double> attention_factors_;
};

}  // namespace wt
