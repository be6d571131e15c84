// Checkpoints of a run at its save_folder, beside those in the run's folder: a bucket, for machines that go away.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/storage/mirror.hpp"

namespace wt {

/// Uploads finished checkpoints behind training, one at a time: each rank the files that it wrote; when all are there,
/// rank 0 commits the checkpoint, removes old ones, as many kept as in the run's folder, and uploads the run's records
/// to `results/`. An upload that fails is named on stderr and training goes on; the next save tries again.
class CheckpointUpload {
 public:
  /// Throws Error{usage} for an address that no store has.
  CheckpointUpload(const RunSpec& run, SharedStore& store, std::int64_t rank);
  /// Gives an upload under way up.
  ~CheckpointUpload();
  CheckpointUpload(const CheckpointUpload&) = delete;
  CheckpointUpload& operator=(const CheckpointUpload&) = delete;

  /// On rank 0, before the first save: see CheckpointMirror::start(). Then uploads the checkpoint that the run goes on
  /// from (empty: none), where the store lacks it. Throws StoreFailed.
  void prepare(std::int64_t goes_on_from, const std::filesystem::path& checkpoint);
  /// An upload under way ends soon, and so do all that follow.
  void give_up();
  /// Waits for the upload before. `names`: of this rank's files in the checkpoint, which `published` says is whole.
  void begin(std::int64_t step, const std::filesystem::path& checkpoint, std::vector<std::string> names,
             const std::string& published);
  /// Waits for the upload under way.
  void wait();
  /// On rank 0, when the run has ended: the records, which `output` holds. Throws StoreFailed.
  void upload_results(const std::filesystem::path& output);
  /// Why the last checkpoint is not at the store; "": it is, or there was none. On rank 0.
  const std::string& failure() const { return failure_; }

 private:
  void upload(std::int64_t step, const std::filesystem::path& checkpoint, const std::vector<std::string>& names,
              const std::string& published);
  void failed(std::int64_t step, const std::string& why);
  void upload_missing(std::int64_t step, const std::filesystem::path& checkpoint);
  std::string commit(std::int64_t step, const std::filesystem::path& checkpoint);

  const RunSpec& run_;
  const std::int64_t rank_;
  std::unique_ptr<Store> place_;
  CheckpointMirror mirror_;
  std::unique_ptr<SharedStore> store_;  ///< the thread's own connection
  StorageProgress progress_;
  std::thread thread_;
  std::atomic<bool> given_up_ = false;
  std::string failure_;
};

}  // namespace wt
