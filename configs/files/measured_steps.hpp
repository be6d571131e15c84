// Steps of a user's own job, for --measured:
//
//   steps:
//   - run: run.yaml               the run file of the job, as it ran; relative to this file, or a preset
//     cluster: cluster.yaml       where it ran: a preset, or a file beside this one
//     tokens_per_s_per_gpu: 6514  or step_s
//     reserved: 63.4GiB           peak of PyTorch's allocator, as the trainer prints it, if known; or allocated
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"

namespace wt {

struct MeasuredStep {
  std::string run_file;  ///< as written
  RunSpec run;
  ClusterSpec cluster;
  double step_s = 0;
  std::optional<double> allocated_bytes = {}, reserved_bytes = {};  ///< peaks
};

/// Throws Error{usage} where a file or key is wrong, or the list is empty.
std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file);

}  // namespace wt
