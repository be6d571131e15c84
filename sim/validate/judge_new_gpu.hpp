// Judges data sheets of cluster files (`gpu.data_sheet`): runs on a GPU that was measured are predicted as a user would
// whose GPU nobody has measured.
#pragma once
#include <string>
#include <vector>

#include "sim/measurements/published_tables.hpp"
#include "sim/validate/judge_runs.hpp"

namespace wt {

/// A GPU with a built-in data sheet, and one of another generation that its cluster file would say it is like.
struct NewGpu {
  std::string gpu, like;
};

/// Rows on `gpu`. The fit has no steps, kernels, collectives or row exchanges of its generation, and, for each row,
/// nothing of its origin. Throws Error{usage} for unknown GPUs, for two of one generation, and if no row has the GPU.
std::vector<Judged> judge_as_new_gpu(std::vector<RunRow> rows, PublishedTables tables, const NewGpu& asked,
                                     const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace wt
