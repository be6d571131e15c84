// Published times of kernels as points of the estimators: each a kernel, the GPU's data sheet, and its seconds.
#pragma once
#include <string>
#include <vector>

#include "configs/files/data_sheet.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/measurements/kernel_rows.hpp"

namespace wt {

/// A kernel on a GPU: what an estimator is asked, and what a point is of.
struct KernelTask {
  KernelShape shape;
  DataSheet gpu;
  double relative_rate = 1;  ///< of the data type's products, see data_sheet.hpp
  double element_bytes = 2;

  bool is_product() const { return shape.op == "gemm"; }
  bool is_grouped() const { return shape.op == "grouped_gemm"; }
  /// Estimated by a library's factor (libraries.hpp), not by its GPU's constants alone.
  bool is_attention() const { return shape.op.starts_with("attention_"); }
  bool is_bound_by_memory() const { return !is_product() && !is_grouped() && !is_attention(); }
  /// Of a gemm, or one of a grouped one's.
  Product product() const { return {shape.m, shape.n, shape.k, relative_rate, element_bytes}; }
  /// That a kernel that works row by row moves.
  double bytes() const;
  /// Seconds that the data sheet allows at least: of FLOPs (products) or bytes (others).
  double least_s() const;
};

/// One measurement.
struct KernelPoint : KernelTask {
  double seconds = 0;
  /// What is left out together: GPU, op, n and k; of attention origin and pass.
  std::string group;
  std::string origin;  ///< who published it (Origins)
  std::string reason;  ///< why it cannot be used; empty = it can

  /// Of what the data sheet allows.
  double share_of_peak() const { return least_s() / seconds; }
};

/// Kernels that no plan asks for have a reason, too: a layer of experts as one kernel, and what a named library makes
/// of a kernel that is bound by memory.
KernelPoint kernel_point(const KernelRow& row);

/// The usable points, one a measurement: what stands in a file and in another counts once.
std::vector<KernelPoint> usable_points(const std::vector<KernelRow>& rows);

}  // namespace wt
