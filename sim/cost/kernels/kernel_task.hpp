// A kernel on a GPU: the question that estimators of kernel times answer.
#pragma once
#include <string>

#include "configs/files/data_sheet.hpp"
#include "sim/cost/kernels/grouped_products.hpp"
#include "sim/cost/kernels/wave_model.hpp"

namespace wt {

/// A kernel and its shape. op is gemm, grouped_gemm, moe_forward or _backward (a layer of experts), attention_forward
/// or _backward, or an op that passes row by row through memory (row_ops.hpp).
struct KernelShape {
  std::string op;
  double m = 0, n = 0, k = 0;  ///< product m x k times k x n; m rows of width n; m queries, k keys, head dimension n
  double groups = 1;           ///< of a grouped product (m rows each); experts of a layer; batch x heads of attention
  bool causal = false;         ///< of attention
  double window = 0;           ///< of causal attention: the most keys that a query sees; 0 = all before it
  std::string implementation = {};  ///< the library; empty = unknown
  bool weight_gradient = false;     ///< of a grouped product
};

struct KernelTask {
  KernelShape shape;
  DataSheet gpu;
  double relative_rate = 1;  ///< of products in the data type, see data_sheet.hpp
  double element_bytes = 2;
  double bytes = 0;  ///< moved by a kernel that works row by row

  bool is_product() const { return shape.op == "gemm"; }
  bool is_grouped() const { return shape.op == "grouped_gemm"; }
  /// Its time depends on a library's factor (libraries.hpp), not only on its GPU's constants.
  bool is_attention() const { return shape.op.starts_with("attention_"); }
  bool is_bound_by_memory() const { return !is_product() && !is_grouped() && !is_attention(); }
  /// The product of a gemm.
  Product product() const { return {shape.m, shape.n, shape.k, relative_rate, element_bytes}; }
  /// The products of a grouped_gemm.
  GroupedProduct grouped() const {
    GroupedProduct out = equal_groups(shape.groups, shape.m, shape.n, shape.k);
    out.weight_gradient = shape.weight_gradient;
    out.relative_rate = relative_rate;
    out.element_bytes = element_bytes;
    return out;
  }
};

}  // namespace wt
