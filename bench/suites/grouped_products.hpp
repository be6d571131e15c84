// Grouped products of bf16 on balanced groups as rows of a bench, each of the three alone, by whoever computes it.
#pragma once
#include <cstdint>

#include "bench/suites/bench_case.hpp"

namespace wt {

struct GroupedShape {
  std::int64_t groups, rows_each, n, k;
  std::int64_t rows() const { return groups * rows_each; }
};

enum class GroupedPass { forward, rows, weight };  ///< rows of the result, their gradients, the weights' gradients
enum class ProductBy { own, library, cublaslt };  ///< our kernel, LibTorch's _grouped_mm, a loop of cuBLASLt's products

/// Row "grouped_gemm_own", "grouped_gemm_library_rows", "grouped_gemm_cublaslt_weight", ...; each result compared with
/// fp64 group by group.
BenchCase grouped_case(GroupedPass pass, ProductBy by, const GroupedShape& shape, at::Device device);
/// All rows times one weight, by cuBLASLt: row "gemm_cublaslt".
BenchCase dense_case(const GroupedShape& shape, at::Device device);
/// Whether our kernel serves this device; its CPU twin does.
bool has_own_product(at::Device device);

}  // namespace wt
