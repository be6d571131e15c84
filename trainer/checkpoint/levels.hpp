// All levels of a run's checkpoints on one rank: storage, and where the run asks for it the memory of its nodes.
#pragma once
#include <filesystem>
#include <optional>

#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/local_load.hpp"
#include "trainer/checkpoint/local_saver.hpp"

namespace wt {

/// Collective over all ranks: every call, in this order.
class CheckpointLevels {
 public:
  /// All outlive this. `output`: the run's folder.
  CheckpointLevels(const std::filesystem::path& output, const RunSpec& run, const RankEnvironment& environment,
                   RankWatch& watch, Communicators& communicators, std::vector<ShardedGroup>& groups);

  /// Loads the newest step from its nearest level; see load_newest_checkpoint().
  std::optional<LoadedCheckpoint> load(const UnfitState& unfit);
  /// Steps begin after `done`; 0 = the run begins. What is newer in the memory of nodes is removed, and so is what this
  /// run cannot read and what nodes without ranks have. The two hear of every finished save, to storage and to memory.
  /// `lease`: see CheckpointSaver.
  void start(std::int64_t done, CheckpointSaver::Done saved, LocalSaver::Done copied,
             const StoreLease* lease = nullptr);
  /// Whether after_step() saves anything. `ends`: no step comes after this one.
  bool due(std::int64_t step, bool ends) const;
  /// After every step: saves where that is due.
  void after_step(std::int64_t step, const SamplerState& sampler, bool ends);
  /// Of a run that begins after its last step, which copies in memory have: saves it where storage has it not, or
  /// damaged. What the memory holds goes when the run ends.
  void complete(const SamplerState& sampler);
  /// Waits for the last saves.
  void finish();
  /// After finish(), when the run ends and its records are written. Where it has a save_folder: waits for the upload of
  /// the last checkpoint, and uploads the records. Throws Error{runtime} on every rank where that failed.
  void finish_uploads();
  /// The run is over and every rank has called finish(): nodes get their memory back, where storage has the state.
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
