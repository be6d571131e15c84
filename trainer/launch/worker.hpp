// One rank of a training run: communicators, executor, data, checkpoints, records.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/checkpoint/levels.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/data/shard_cache.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/executor/recorder.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/launch/evaluate_rank.hpp"
#include "trainer/storage/lease.hpp"
#include "trainer/trackers/trackers.hpp"

namespace c10d {
class Store;
}

namespace wt {

struct WorkerOptions {
  std::filesystem::path folder;
  std::optional<Scenario> faults;  ///< that are to strike
  /// That a run which begins draws its batches for; see batch_nodes.hpp.
  std::optional<BatchWorld> batch_world = BatchWorld{};
};

/// Opens the run's device (the local_rank-th of its kind), counts tensor memory, one thread, deterministic kernels:
/// what every process that executes steps begins with.
at::Device prepare_rank_process(const RunSpec& run, std::int64_t local_rank);

/// torchrun --nnodes=MIN:MAX starts fewer ranks, or more again: a run that has saved goes on in the best layout for
/// them. Collective: rank 0 looks whether it has, and tells the others through the store of this generation. Throws
/// Error{usage} where the folder of checkpoints cannot be listed.
RunSpec fit_to_world(RunSpec run, const RankEnvironment& environment, const std::filesystem::path& folder,
                     c10d::Store& store);

/// Ranks on machines of unequal memory find unequal microbatches (device_train_microbatch_size: auto): all take the
/// first rank's. Collective.
void take_microbatch_of_first(RunSpec& run, const RankEnvironment& environment, c10d::Store& store);

/// How a rank's part in a membership ended.
struct RankEnd {
  bool finished = true;            ///< false: asked to end before run.steps (trainer/launch/notice.hpp), all have saved
  std::optional<Membership> next;  ///< the run goes on in another membership
};

/// A rank's process. Where the run goes on without a replica its state stays in memory from one membership to the next.
class Worker {
 public:
  Worker(RunSpec run, WorkerOptions options);
  ~Worker();

  /// Trains to run.steps, or to the end of the membership: from the newest valid checkpoint in folder/checkpoints, or
  /// from the step that all ranks of the membership before have done. A step that only some of them have done is taken
  /// back; ranks that join get the state of the first replica. Throws Error{usage} where the world does not fit the
  /// run's layout.
  RankEnd train(const RankEnvironment& environment, RankWatch& watch);

 private:
  /// How far the rank is.
  struct Position {
    std::int64_t done = 0;  ///< steps
    SamplerState sampler;
  };
  void prepare(const RunSpec& run, const RankEnvironment& environment, int generation);
  /// run.adapter_base becomes that of the checkpoint.
  void load(RunSpec& run, Executor& executor, Communicators& communicators, CheckpointLevels& checkpoints);
  /// The folder of load_path; the first rank fetches it where it is at a store.
  std::filesystem::path pretrained(const RunSpec& run, Communicators& communicators) const;
  void start_trackers(const RunSpec& run, Recorder& recorder);
  void end_trackers(TrackedEnd how);
  void agree(const RunSpec& run, Executor& executor, Communicators& communicators, bool joins);
  AfterStep train_steps(const RunSpec& run, Executor& executor, Communicators& communicators,
                        CheckpointLevels& checkpoints, Recorder& recorder, RankWatch& watch);
  /// What was asked for is saved: uploads what is left of it.
  RankEnd end_on_request(const RunSpec& run, Communicators& communicators, CheckpointLevels& checkpoints);
  /// Into export_path, as Hugging Face keeps weights. Collective.
  void export_weights(const RunSpec& run, Executor& executor, Communicators& communicators) const;

  const RunSpec run_;
  const WorkerOptions options_;
  const ShardCache data_;
  Sampler sampler_;
  const Evaluator evaluator_;
  std::unique_ptr<StoreLease> lease_;  ///< of the save_folder, on rank 0
  std::unique_ptr<StepClock> clock_;
  std::optional<LoadedCheckpoint> loaded_;  ///< by this membership; none where it goes on from memory
  Position now_, before_last_;
  // From one membership to the next:
  std::vector<ShardedGroup> groups_;
  StateBefore before_;
  std::string last_line_;               ///< of metrics.jsonl
  std::unique_ptr<Trackers> trackers_;  ///< on rank 0
};

}  // namespace wt
