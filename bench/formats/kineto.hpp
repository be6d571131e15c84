// Reading a Chrome trace that PyTorch's profiler (Kineto) exported: what ran on the GPU, by kernel and by class.
#pragma once
#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/formats/kernel_class.hpp"
#include "configs/files/profile.hpp"

namespace wt {

struct TracedKernel {
  KernelClass kind = KernelClass::unknown;
  std::vector<double> seconds;  ///< of every execution, in the trace's order
  double total_s = 0;
};

struct KinetoTrace {
  std::map<std::string, TracedKernel> kernels;  ///< by name
  std::array<double, 8> class_s{};              ///< by KernelClass; sums to kernel_s
  double kernel_s = 0;                          ///< of all, overlapping ones each for itself
  double span_s = 0;                            ///< from the first start to the last end
  /// "trace/CLASS/NAME" for every kernel, clock `device`; beside them "gemm" with rows, n and k for products whose
  /// operator was recorded with its shapes (torch.profiler's record_shapes), ready for `windtunnel calibrate`.
  Profile profile;
  double share(KernelClass kind) const { return kernel_s > 0 ? class_s[static_cast<std::size_t>(kind)] / kernel_s : 0; }
};

/// Reads events of category kernel, gpu_memcpy and gpu_memset (also as older releases spell them). One device alone: a
/// trace is a rank's. Throws Error{usage} naming origin and event: no traceEvents, no GPU work, times that are missing,
/// negative or no numbers, several devices.
KinetoTrace from_kineto(const nlohmann::json& document, const std::string& origin);

/// Whether the document looks like a Chrome trace: an object with traceEvents.
bool is_chrome_trace(const nlohmann::json& document);

}  // namespace wt
