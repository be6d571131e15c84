// Uploads a run's checkpoints to its save_folder, in addition to those in the run's folder: a bucket, for machines that
// may be lost.
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

/// Uploads finished checkpoints during training, one at a time. Each rank uploads the files that it wrote. When all are
/// there, rank 0 commits the checkpoint, removes old ones (as many are kept as in the run's folder), and uploads the
/// run's records to `results/`. If an upload fails, stderr says so and training continues; the next save tries again.
class CheckpointUpload {
 public:
  /// Throws Error{usage} for an address that no store has.
  CheckpointUpload(const RunSpec& run, SharedStore& store, std::int64_t rank);
  /// Abandons a running upload.
  ~CheckpointUpload();
  CheckpointUpload(const CheckpointUpload&) = delete;
  CheckpointUpload& operator=(const CheckpointUpload&) = delete;

  /// Called on rank 0 before the first save: see CheckpointMirror::start(). Then uploads the checkpoint from which the
  /// run continues (empty: none) if the store lacks it. Throws StoreFailed.
  void prepare(std::int64_t goes_on_from, const std::filesystem::path& checkpoint);
  /// Makes the running upload and all later ones end soon.
  void give_up();
  /// Waits for the previous upload, then starts one. `names`: this rank's files in the checkpoint. The key `published`
  /// says when the checkpoint is whole.
  void begin(std::int64_t step, const std::filesystem::path& checkpoint, std::vector<std::string> names,
             const std::string& published);
  /// Waits for the running upload.
  void wait();
  /// Called on rank 0 when the run has ended: uploads the records in `output`. Throws StoreFailed.
  void upload_results(const std::filesystem::path& output);
  /// On rank 0: the reason for which the last checkpoint is not at the store; "" if it is, or if none was saved.
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
