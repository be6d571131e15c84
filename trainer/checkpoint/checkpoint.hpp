// Sharded checkpoints. One replica writes; each of its ranks writes what it owns of the fp32 masters and AdamW moments,
// keyed by logical parameter, into safetensors files. PyTorch's HuggingFaceStorageReader can read them, and so can a
// run of ours in any other layout. Saving is asynchronous: training stops while values are copied; then a thread writes
// them and reads them back (verify_saves). Files go to step-N.partial; when all are synced, rank 0 writes
// manifest.json, renames the folder to step-N and points `latest` at it. A folder without a manifest, or whose files do
// not match its manifest, is not a checkpoint, but is never deleted.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "trainer/checkpoint/upload.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/device/device.hpp"
#include "trainer/parameters/weights.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/storage/lease.hpp"

namespace wt {

class LocalLoader;
class StoreCheckpoints;

struct SaveTimes {
  double blocking_s = 0;  ///< training stopped for this long: it waited for the previous save, then copied
  double total_s = 0;  ///< from the same start until this rank had written; on rank 0, until the checkpoint was valid
  double bytes = 0;    ///< written by this rank
};

/// A copy of what this rank writes, in plain host memory: it is neither counted as tensor memory nor kept on the GPU.
/// The buffer is reused from save to save, because touching fresh pages costs more than the copy.
class StagedState {
 public:
  void copy(const std::vector<ShardedGroup>& groups, std::int64_t step, std::int64_t rank);
  /// Tensors of each file. A file can have a key only once, so that a parameter cut into several rectangles needs
  /// several files.
  const std::vector<std::vector<OutgoingTensor>>& files() const { return files_; }
  std::int64_t bytes() const;

 private:
  HostBuffer values_;
  std::vector<std::vector<OutgoingTensor>> files_;
};

/// A checkpoint that is newer than the one from which the run continues.
struct PassedOver {
  std::filesystem::path path;
  const char* renamed = "unreadable";  ///< suffix of its name after the run publishes its first checkpoint
};

/// Where a run begins.
struct Beginning {
  std::int64_t done = 0;                  ///< steps
  std::filesystem::path checkpoint = {};  ///< from which it continues; empty: none in storage
};

/// Saves checkpoints of one run, one at a time. Collective over all ranks.
class CheckpointSaver {
 public:
  /// Called for every finished save, on the training thread, during the next call of the saver.
  using Done = std::function<void(std::int64_t step, const SaveTimes&)>;
  /// `passed_over`: checkpoints newer than the one from which this run continues. They are renamed before it publishes
  /// its first one, so that neither a checkpoint of the same step nor retention removes them. `lease`: of the
  /// save_folder, on rank 0; after it is lost, no save succeeds.
  CheckpointSaver(std::filesystem::path folder, const RunSpec& run, Communicators& communicators, Beginning beginning,
                  std::vector<PassedOver> passed_over, Done done, const StoreLease* lease = nullptr);
  /// Abandons a running save unless finish() was called; what it has written is then no checkpoint.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  /// Waits for the previous save, copies and returns; a thread writes. Throws Error{runtime} on every rank when a rank
  /// could not write the previous save, of which no files remain.
  void save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups);
  /// Waits for the last save. Throws as save() does.
  void finish();
  /// After finish(), at the end of a run with a save_folder: waits for the upload of the last checkpoint, and uploads
  /// the records in `output`. Throws Error{runtime} on every rank where that failed.
  void finish_upload(const std::filesystem::path& output);

 private:
  /// Runs in the thread: writes this rank's files and then, on rank 0, the manifest.
  void write();
  void begin_folder();
  nlohmann::json write_own_files();
  std::string publish();

  const std::filesystem::path folder_;
  const RunSpec& run_;
  Communicators& communicators_;
  std::vector<PassedOver> passed_over_;
  Done done_;
  const StoreLease* lease_;
  StagedState staged_;
  std::unique_ptr<SharedStore> store_;        ///< the thread's own connection
  std::optional<StorageProgress> progress_;   ///< of this rank, published in store_
  std::unique_ptr<CheckpointUpload> upload_;  ///< where the run has a save_folder
  std::thread thread_;
  std::atomic<bool> given_up_ = false;
  bool under_way_ = false;
  // Of the running save. The training thread does not touch them while the thread runs.
  std::int64_t step_ = 0;
  SamplerState sampler_;
  double begun_at_s_ = 0, blocking_s_ = 0, written_at_s_ = 0, bytes_ = 0;
};

struct LoadedCheckpoint {
  std::int64_t step = 0;
  SamplerState sampler;
  CopyLevel level = CopyLevel::storage;
  /// In storage; empty for copies in memory, unless storage also has the run's last step whole.
  std::filesystem::path path;
  std::vector<PassedOver> passed_over;
  std::string adapter_base;        ///< the base weights of its adapter; empty: it names none
  std::vector<std::string> notes;  ///< lines for the log: settings that were changed on purpose
};

using UnfitState = std::function<std::string(std::int64_t step, const SamplerState& sampler)>;

/// Collective. Loads the newest step that is whole and undamaged in one of three places: the memory of nodes (`copies`,
/// may be null), storage, or the run's save_folder (`at_store`, may be null), from which it is fetched. If several
/// places have the step undamaged, the nearest one is used. From storage, the ranks of the first replica verify sizes
/// and checksums, read what they own and broadcast it to the ranks that keep copies. Checkpoints that cannot be read
/// are named on stderr and passed over. Returns nullopt where no place has a checkpoint. Throws Error{usage} on every
/// rank when storage has checkpoints but neither they nor copies can be read, and when the chosen one belongs to
/// another run: another model, optimizer or order of samples. `unfit` returns the reason for which the run cannot
/// continue from a readable state, or ""; such a state is passed over, too.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::filesystem::path& folder, const RunSpec& run,
                                                       std::vector<ShardedGroup>& groups, Communicators& communicators,
                                                       LocalLoader* copies, const UnfitState& unfit,
                                                       StoreCheckpoints* at_store = nullptr);

}  // namespace wt
