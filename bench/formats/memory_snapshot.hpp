// Memory snapshots of PyTorch's CUDA allocator (torch.cuda.memory._dump_snapshot): what one GPU had reserved and
// allocated, and the most of it while the history was recorded. Source of the keys:
// torch/csrc/cuda/memory_snapshot.cpp. Memory of NCCL and of the CUDA context is not the allocator's.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace wt {

struct MemorySnapshot {
  double reserved_bytes = 0;   ///< of segments, the highest while recorded: the job's peak is at least that
  double allocated_bytes = 0;  ///< of tensors; sizes in the history rounded up to 512 bytes, as the allocator does
  std::int64_t events = 0;     ///< recorded before the snapshot; 0: the peaks are those of the moment
  bool from_start = false;     ///< the history reaches back to when nothing was reserved
  std::int64_t failures = 0;   ///< allocations that found no memory
};

/// Of the GPU that has most reserved. Throws Error{usage} as Pickle does, and for a pickle of something else.
MemorySnapshot memory_snapshot_from(std::string_view bytes, const std::string& origin);

/// The same of a file, of 2 GiB at most, plain or gzip.
MemorySnapshot read_memory_snapshot(const std::filesystem::path& file);

}  // namespace wt
