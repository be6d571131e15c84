// What processes of training runs took of a GPU's memory outside of PyTorch's allocator, as out-of-memory messages tell
// it: one row a message. Columns of the CSV, among others: source, framework, gpu, n_gpus, capacity_gib, in_use_gib,
// allocated_gib, reserved_unallocated_gib.
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
  std::int64_t gpus = 0;      ///< of the run; 0 = not said, taken for several
  double in_use_bytes = 0;    ///< of the process, as the driver counts it
  double reserved_bytes = 0;  ///< of its allocator: allocated, and reserved but not allocated
  std::string unusable = {};  ///< why the row says nothing

  bool alone() const { return gpus == 1; }  ///< no NCCL
  double outside_bytes() const { return in_use_bytes - reserved_bytes; }
};

/// Every row of the table, in order; one that is broken, or whose process uses less than its allocator reserves or more
/// than the GPU has, says so in `unusable`. Throws Error{usage} as read_csv does.
std::vector<OutsideRow> read_outside_rows(const std::filesystem::path& file);

}  // namespace wt
