// What a published rate says of a kernel: people name kernels, shapes and units freely, so that all of them are read
// from words. A kernel is told by its name and by the shape that it needs:
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

/// Fills op, implementation, shape and seconds, or says in `unusable` what is missing. Throws Error{usage} where the
/// rate is not above 0.
void read_rate(const KernelRate& rate, KernelRow& row);

/// FLOPs by which kernels' rates are published: a causal mask halves those of attention, a backward pass of attention
/// counts 2.5 forward ones, of products twice as many.
double published_flops(const KernelShape& row);
/// Bytes that it has to move: each operand and result once.
double least_bytes(const KernelShape& row, double element_bytes);

}  // namespace wt
