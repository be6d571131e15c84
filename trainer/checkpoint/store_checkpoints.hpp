// Checkpoints at a run's save_folder, from which a run can continue if the machine that saved them is lost or its local
// copy is damaged.
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

/// The constructor and fetch() are collective over all ranks.
class StoreCheckpoints {
 public:
  /// `run` and `communicators` must outlive this. `output`: the run's folder. Throws Error{usage} for an address that
  /// no store has. If the store does not answer, rank 0 throws StoreFailed and the other ranks Error{runtime}.
  StoreCheckpoints(const RunSpec& run, const std::filesystem::path& output, Communicators& communicators);

  /// The steps at the store, newest first; the same on every rank.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  bool has(std::int64_t step) const;
  std::string address() const { return place_->address(); }

  /// Downloads output/checkpoints/step-N and verifies it. Each rank that holds the state fetches its share of the
  /// files. Then the run's records are fetched, unless `output` has them. An existing folder of this name is unreadable
  /// and is renamed to step-N.unreadable; ranks that read the checkpoint wait up to 90 s until they see the new folder.
  /// Returns the reason for which the store has no whole checkpoint, the same on every rank; "" = it was fetched.
  /// Throws if the store does not answer or the disk is full.
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
