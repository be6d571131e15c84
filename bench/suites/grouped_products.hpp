// Bench rows for grouped products of bf16 on balanced groups: each of the three products, by each implementation.
#pragma once
#include <cstdint>

#include "bench/suites/bench_case.hpp"

namespace wt {

struct GroupedShape {
  std::int64_t groups, rows_each, n, k;
  std::int64_t rows() const { return groups * rows_each; }
};

enum class GroupedPass { forward, rows, weight };  ///< the result's rows, the gradient of rows, that of the weights
enum class ProductBy { own, library, cublaslt };  ///< our kernel, LibTorch's _grouped_mm, a loop of cuBLASLt's products

/// Row "grouped_gemm_own", "grouped_gemm_library_rows", "grouped_gemm_cublaslt_weight", ... Each result is compared
/// with fp64 group by group.
BenchCase grouped_case(GroupedPass pass, ProductBy by, const GroupedShape& shape, at::Device device);
/// All rows times one weight by cuBLASLt: row "gemm_cublaslt".
BenchCase dense_case(const GroupedShape& shape, at::Device device);
/// Whether our kernel supports this device; the CPU has its own version.
bool has_own_product(at::Device device);

}  // namespace wt
