// All levels of a run's checkpoints on one rank: storage and, if the run asks for it, the memory of its nodes.
#pragma once
#include <filesystem>
#include <optional>

#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/local_load.hpp"
#include "trainer/checkpoint/local_saver.hpp"

namespace wt {

/// Every call is collective over all ranks. Calls come in this order.
class CheckpointLevels {
 public:
  /// All arguments must outlive this. `output`: the run's folder.
  CheckpointLevels(const std::filesystem::path& output, const RunSpec& run, const RankEnvironment& environment,
                   RankWatch& watch, Communicators& communicators, std::vector<ShardedGroup>& groups);

  /// Loads the newest step from its nearest level; see load_newest_checkpoint().
  std::optional<LoadedCheckpoint> load(const UnfitState& unfit);
  /// Training continues after step `done`; 0 = from the beginning. Removes copies in the memory of nodes that are
  /// newer, that this run cannot read, or that belong to nodes without ranks. `saved` is called for every finished save
  /// to storage, `copied` for every one to memory. `lease`: see CheckpointSaver.
  void start(std::int64_t done, CheckpointSaver::Done saved, LocalSaver::Done copied,
             const StoreLease* lease = nullptr);
  /// Whether after_step() will save. `ends`: this is the last step.
  bool due(std::int64_t step, bool ends) const;
  /// Called after every step; saves if due().
  void after_step(std::int64_t step, const SamplerState& sampler, bool ends);
  /// For a run that was restored from memory after its last step: saves that step if storage lacks it or has it
  /// damaged, because the memory is freed when the run ends.
  void complete(const SamplerState& sampler);
  /// Waits for the last saves.
  void finish();
  /// Called after finish(), when the run has ended and written its records. If it has a save_folder: waits for the
  /// upload of the last checkpoint, and uploads the records. Throws Error{runtime} on every rank if that failed.
  void finish_uploads();
  /// Called after every rank has called finish() and the run has ended: frees the memory of nodes if storage has the
  /// state.
  void give_back_memory();

 private:
  bool due_in_storage(std::int64_t step, bool ends) const;
  bool due_in_memory(std::int64_t step, bool ends) const;

  const std::filesystem::path output_;
  const RunSpec& run_;
  Communicators& communicators_;
  std::vector<ShardedGroup>& groups_;
  RankLinks links_;
  std::optional<CopySite> site_;  ///< none: no copies in memory
  std::vector<PassedOver> passed_over_;
  std::filesystem::path loaded_path_;  ///< in storage; empty: none
  bool last_is_missing_ = false;       ///< in storage
  std::optional<CheckpointSaver> saver_;
  std::optional<LocalSaver> copier_;
};

}  // namespace wt
