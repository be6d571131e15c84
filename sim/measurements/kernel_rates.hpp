// What a published rate says about a kernel. Authors name kernels, shapes and units freely, so all of these are read
// from words. The kernel is known by its name and by the dimensions that it needs:
//   gemm                   "dense GEMM", "matmul", ..:        M, N, K, named or as 4096x2112x7168
//   grouped_gemm           the same over groups:              groups (E, batch), M of each or tokens of all, N, K
//   moe_forward, _backward a whole layer of experts:          T (tokens), d, n, E, K (choices), gated
//   attention_forward, _backward                              B, H, S, D, causal
//   rmsnorm, swiglu, ..    bound by memory (row_ops.hpp):     rows x width
#pragma once
#include <string>

#include "sim/measurements/kernel_rows.hpp"

namespace wt {

struct KernelRate {
  std::string source, kernel, shape, precision, unit;
  double value = 0;
};

/// Fills op, implementation, shape and seconds, or says in `unusable` what is missing. Throws Error{usage} if the rate
/// is not above 0.
void read_rate(const KernelRate& rate, KernelRow& row);

/// FLOPs as publishers of rates count them: a causal mask halves those of attention. A backward pass counts as 2.5
/// forward passes for attention, and as two for products.
double published_flops(const KernelShape& row);
/// Bytes that the kernel has to move: each operand and result once.
double least_bytes(const KernelShape& row, double element_bytes);

}  // namespace wt
