// What a profiler saw of one rank's GPU, whichever profiler it was: kernels and copies with their times, and as far as
// it says, which collective of which group each one was.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/formats/kineto.hpp"

namespace wt {

struct GpuWork {
  double begin_s = 0, end_s = 0;  ///< by a clock that other ranks need not share
  KernelClass kind = KernelClass::unknown;
  std::string group = {};  ///< of a collective: "mesh_shard, all_gather", or "not named"
  /// Of a collective: its process group's name and ranks, and what it does. The same on all of its ranks; empty where
  /// that cannot be told, and for send and receive.
  std::string among = {};
  std::optional<std::int64_t> number = {};  ///< in the sequence of its process group
};

struct GpuTrace {
  std::vector<GpuWork> work;
  std::set<std::int64_t> marks;       ///< numbers of the steps that are marked in it
  std::optional<std::int64_t> rank;   ///< which exported it
  std::optional<std::int64_t> ranks;  ///< of the job
};

/// Of a Chrome trace by PyTorch's profiler. Throws as from_kineto().
GpuTrace gpu_trace(const nlohmann::json& document, const std::string& origin);

/// "AllGather" of ncclDevKernel_AllGather_RING_LL(...); "not named" of kernels that do not say it.
std::string collective_of_kernel(const std::string& name);

/// Reads a Chrome trace, plain or gzip, or Nsight Systems' SQLite export. Events of the host are dropped while it is
/// read. Throws Error{usage} as gpu_trace(), read_unpacked() and read_nsight(), and for text that is no JSON, or cut.
GpuTrace read_gpu_trace(const std::filesystem::path& file);

}  // namespace wt
