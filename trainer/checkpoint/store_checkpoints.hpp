// Checkpoints at a run's save_folder, for a run that looks for what to go on from: the machine that saved them may be
// gone, or its copy be damaged.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/storage/mirror.hpp"

namespace wt {

/// Collective over all ranks: the constructor, and every fetch().
class StoreCheckpoints {
 public:
  /// Both outlive this. `output`: the run's folder. Throws Error{usage} for an address that no store has, StoreFailed
  /// where the store does not answer; Error{runtime} on the ranks that hear of it.
  StoreCheckpoints(const RunSpec& run, const std::filesystem::path& output, Communicators& communicators);

  /// At the store, newest first; the same on every rank.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  bool has(std::int64_t step) const;
  std::string address() const { return place_->address(); }

  /// Brings output/checkpoints/step-N, whole and verified: each rank that holds the state its share of the files; then
  /// the run's records, where `output` has none. A checkpoint of this name that is there, which cannot be read, becomes
  /// step-N.unreadable. Ranks that read it wait until they see the new one, at most 90 s. Returns why the store's is no
  /// whole checkpoint, the same on every rank; "" = it is there. Throws where the store cannot be asked, or the disk is
  /// full.
  std::string fetch(std::int64_t step);

 private:
  std::string begin(std::int64_t step);
  std::string bring_share(const std::filesystem::path& folder);
  void publish(const std::filesystem::path& begun);

  const RunSpec& run_;
  const std::filesystem::path output_, folder_;
  Communicators& communicators_;
  StorageProgress progress_;
  const std::unique_ptr<Store> place_;
  CheckpointMirror mirror_;
  std::vector<std::int64_t> steps_;
};

}  // namespace wt
