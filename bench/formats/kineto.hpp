// Reads a Chrome trace exported by PyTorch's profiler (Kineto): GPU work by kernel and by class.
#pragma once
#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"

namespace wt {

/// Classifies GPU kernels by name. Names follow only habits of the libraries; `unknown` is an honest answer.
enum class KernelClass { collective, attention, gemm, optimizer, sorting, memory_bound, transfer, unknown };
std::string to_string(KernelClass kind);

/// Accepts demangled and mangled names, as profilers print them. The first match counts: NCCL, RCCL, NVSHMEM and
/// DeepEP; flash attention and fused multi-head attention; cuBLAS (nvjet, xmma, gemm, splitK reductions), CUTLASS,
/// Triton's matrix templates; Adam and multi-tensor kernels; top-k, sorts, scans and histograms (routing); norms,
/// activations, element-wise work, reductions, softmax, embeddings, copies and Triton's pointwise and reduction
/// kernels.
KernelClass kernel_class(const std::string& name);

struct TracedKernel {
  KernelClass kind = KernelClass::unknown;
  std::vector<double> seconds;  ///< one per execution, in the trace's order
  double total_s = 0;
};

struct KinetoTrace {
  std::map<std::string, TracedKernel> kernels;  ///< by name
  std::array<double, 8> class_s{};              ///< index: KernelClass; the sum is kernel_s
  double kernel_s = 0;                          ///< sum over all kernels; overlapping ones count fully
  double span_s = 0;                            ///< from the first start to the last end
  /// "trace/CLASS/NAME" for every kernel, with clock `device`. In addition "gemm" with rows, n and k for products whose
  /// operator was recorded with shapes (torch.profiler's record_shapes), for `windtunnel calibrate`.
  Profile profile;
  double share(KernelClass kind) const { return kernel_s > 0 ? class_s[static_cast<std::size_t>(kind)] / kernel_s : 0; }
};

/// Reads events of category kernel, gpu_memcpy and gpu_memset (also in older spellings). A trace must be of one device,
/// because it is one rank's. Throws Error{usage} with origin and event: no traceEvents, no GPU work, missing or invalid
/// times, several devices.
KinetoTrace from_kineto(const nlohmann::json& document, const std::string& origin);

/// Whether an event is a kernel, a copy or a fill on a GPU.
bool is_gpu_work(const nlohmann::json& event);

/// Whether the document is a Chrome trace: an object with traceEvents.
bool is_chrome_trace(const nlohmann::json& document);

}  // namespace wt
