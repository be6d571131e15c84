// Classifies GPU kernels by name. Names follow only habits of the libraries; `unknown` is an honest answer.
#pragma once
#include <string>

namespace wt {

enum class KernelClass { collective, attention, gemm, optimizer, sorting, memory_bound, transfer, unknown };
std::string to_string(KernelClass kind);

/// Accepts demangled and mangled names, as profilers print them. The first match counts: NCCL, RCCL, NVSHMEM and
/// DeepEP; flash attention and fused multi-head attention; cuBLAS (nvjet, xmma, gemm, splitK reductions), CUTLASS,
/// Triton's matrix templates; Adam and multi-tensor kernels; top-k, sorts, scans and histograms (routing); norms,
/// activations, element-wise work, reductions, softmax, embeddings, copies and Triton's pointwise and reduction
/// kernels.
KernelClass kernel_class(const std::string& name);

}  // namespace wt
