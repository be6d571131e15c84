// A kernel on a GPU: the question that estimators of kernel times answer.
#pragma once
#include <string>

#include "configs/files/data_sheet.hpp"
#include "sim/cost/kernels/wave_model.hpp"

namespace wt {

/// A kernel and its shape. op: gemm, grouped_gemm, moe_forward and _backward (a layer of experts), attention_forward
/// and _backward, or one that passes row by row through memory (row_ops.hpp).
struct KernelShape {
  std::string op;
  double m = 0, n = 0, k = 0;  ///< m x k times k x n; rows m and width n; m queries, k keys, head dimension n
  double groups = 1;           ///< of a grouped product (m rows each), experts of a layer; batch x heads of attention
  bool causal = false;         ///< attention
  double window = 0;           ///< causal attention: keys that a query sees at most; 0 = all before it
  std::string implementation = {};  ///< the library; empty = not said
};

struct KernelTask {
  KernelShape shape;
  DataSheet gpu;
  double relative_rate = 1;  ///< of the data type's products, see data_sheet.hpp
  double element_bytes = 2;
  double bytes = 0;  ///< that a kernel working row by row moves

  bool is_product() const { return shape.op == "gemm"; }
  bool is_grouped() const { return shape.op == "grouped_gemm"; }
  /// Estimated by a library's factor (libraries.hpp), not by its GPU's constants alone.
  bool is_attention() const { return shape.op.starts_with("attention_"); }
  bool is_bound_by_memory() const { return !is_product() && !is_grouped() && !is_attention(); }
  /// Of a gemm, or one of a grouped one's.
  Product product() const { return {shape.m, shape.n, shape.k, relative_rate, element_bytes}; }
};

}  // namespace wt
