// One rank of a training run: communicators, executor, data, checkpoints, records.
#pragma once
#include <filesystem>
#include <optional>

#include "configs/spec/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/faults/fault_point.hpp"

namespace wt {

struct WorkerOptions {
  std::filesystem::path folder;
  std::optional<Scenario> faults;  ///< that are to strike
};

/// Opens the run's device (the local_rank-th of its kind), counts tensor memory, one thread, deterministic kernels:
/// what every process that executes steps begins with.
at::Device prepare_rank_process(const RunSpec& run, std::int64_t local_rank);

/// Trains to run.steps, continuing from the newest valid checkpoint in folder/checkpoints. False: a rank was asked to
/// end before (trainer/launch/notice.hpp), and all have saved after the same step.
bool train_as_rank(const RunSpec& run, const RankEnvironment& environment, const WorkerOptions& options,
                   RankWatch& watch);

}  // namespace wt
