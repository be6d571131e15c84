#include "bench/formats/kernel_class.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace wt {

std::string to_string(KernelClass kind) {
  static const char* names[] = {"collective", "attention",    "gemm",     "optimizer",
                                "sorting",    "memory_bound", "transfer", "unknown"};
  return names[static_cast<int>(kind)];
}

KernelClass kernel_class(const std::string& name) {
  using enum KernelClass;
  // The order matters: a fused attention is also a CUTLASS kernel, and everything in PyTorch is at::native.
  static const std::vector<std::pair<KernelClass, std::vector<const char*>>> kWords{
      {collective, {"nccl", "rccl", "nvshmem", "deep_ep", "all_reduce_kernel", "symm_mem"}},
      {attention, {"flash", "fmha", "attention", "mha_fwd", "mha_bwd"}},
      {optimizer, {"adam", "multi_tensor", "multitensor", "lamb"}},
      {sorting,
       {"topk", "top_k", "radixsort", "radix_sort", "bitonic", "devicescan", "histogram", "devicemergesort",
        "gathertopk", "moe_align"}},
      {gemm,
       {"gemm", "gemv", "nvjet", "xmma", "splitkreduce", "cublas", "cutlass", "wgmma", "triton_tem", "hmma", "_s16816",
        "_s1688"}},
      {memory_bound,
       {"elementwise", "norm",       "reduce",     "softmax", "cross_entropy", "nll_loss", "embedding", "indexselect",
        "index_",      "indexing",   "copy",       "fill",    "memset",        "cat",      "transpose", "permute",
        "dropout",     "gelu",       "silu",       "swiglu",  "rope",          "rotary",   "scatter",   "gather",
        "triton_poi",  "triton_red", "triton_per", "cast",    "distribution"}}};
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [kind, words] : kWords)
    for (const char* word : words)
      if (lower.find(word) != std::string::npos) return kind;
  return unknown;
}

}  // namespace wt
