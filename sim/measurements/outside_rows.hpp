// GPU memory that processes of training runs used outside PyTorch's allocator, from out-of-memory messages: one row per
// message. Columns of the CSV, among others: source, framework, gpu, n_gpus, capacity_gib, in_use_gib, allocated_gib,
// reserved_unallocated_gib.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

struct OutsideRow {
  std::int64_t line = 0;  ///< in the file
  std::string source, framework, gpu;
  std::string origin;         ///< who published it (Origins)
  std::int64_t gpus = 0;      ///< of the run; 0 = not stated, counts as several
  double in_use_bytes = 0;    ///< by the process, as the driver counts
  double reserved_bytes = 0;  ///< by its allocator: allocated, and reserved but not allocated
  std::string unusable = {};  ///< why the row cannot be used; empty = it can

  bool alone() const { return gpus == 1; }  ///< no NCCL
  double outside_bytes() const { return in_use_bytes - reserved_bytes; }
};

/// Every row of the table, in order. `unusable` says so if a row is broken, or if its process uses less than its
/// allocator reserves or more than the GPU has. Throws Error{usage} as read_csv does.
std::vector<OutsideRow> read_outside_rows(const std::filesystem::path& file);

}  // namespace wt
