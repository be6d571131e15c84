// Sharded checkpoints. One replica writes; each of its ranks writes what it owns of the fp32 masters and AdamW moments,
// keyed by logical parameter, into safetensors files that PyTorch's HuggingFaceStorageReader and any other layout of
// ours can read. Saving is asynchronous: training stands still while values are copied, a thread writes them, and reads
// them back (verify_saves). Files go to step-N.partial; when all are synced, rank 0 writes manifest.json, renames the
// folder to step-N and points `latest` at it. A folder without a manifest, or whose files do not match it, is not a
// checkpoint; nobody deletes it either.
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
  double blocking_s = 0;  ///< training stood still for so long: waiting for the save before, and the copy
  double total_s = 0;  ///< from the same moment until this rank had written; on rank 0, until the checkpoint was valid
  double bytes = 0;    ///< written by this rank
};

/// A copy of what this rank writes, in plain host memory: it counts neither as tensor memory nor, on a GPU, as its
/// memory. The buffer is kept from save to save, because touching fresh pages costs more than the copy.
class StagedState {
 public:
  void copy(const std::vector<ShardedGroup>& groups, std::int64_t step, std::int64_t rank);
  /// Tensors of each file. A key is in a file once, so a parameter cut into several rectangles fills several files.
  const std::vector<std::vector<OutgoingTensor>>& files() const { return files_; }
  std::int64_t bytes() const;

 private:
  HostBuffer values_;
  std::vector<std::vector<OutgoingTensor>> files_;
};

/// Newer than what a run goes on from.
struct PassedOver {
  std::filesystem::path path;
  const char* renamed = "unreadable";  ///< what its name gets when the run publishes its first checkpoint
};

/// What a run begins with.
struct Beginning {
  std::int64_t done = 0;                  ///< steps
  std::filesystem::path checkpoint = {};  ///< that it goes on from; empty: none in storage
};

/// Saves checkpoints of one run, one at a time. Collective over all ranks.
class CheckpointSaver {
 public:
  /// `done` hears of every finished save, on the training thread, at the next call.
  using Done = std::function<void(std::int64_t step, const SaveTimes&)>;
  /// `passed_over`: newer than what this run goes on from. They are renamed before its first checkpoint is published,
  /// so that neither a checkpoint of the same step nor retention ends them. `lease`: of the save_folder, on rank 0;
  /// once it is lost, no save succeeds.
  CheckpointSaver(std::filesystem::path folder, const RunSpec& run, Communicators& communicators, Beginning beginning,
                  std::vector<PassedOver> passed_over, Done done, const StoreLease* lease = nullptr);
  /// Without finish() before it, a save under way is given up: what is half written is no checkpoint.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  /// Waits for the save before, copies, returns; writing goes on. Throws Error{runtime} on every rank when a rank could
  /// not write the save before; nothing of that one is left behind.
  void save(std::int64_t step, const SamplerState& sampler, const std::vector<ShardedGroup>& groups);
  /// Waits for the last save. Throws as save() does.
  void finish();
  /// After finish(), at the end of a run with a save_folder: waits for the upload of the last checkpoint, and uploads
  /// the records in `output`. Throws Error{runtime} on every rank where that failed.
  void finish_upload(const std::filesystem::path& output);

 private:
  /// The thread: what this rank writes; then, on rank 0, the manifest.
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
  std::optional<StorageProgress> progress_;   ///< through it
  std::unique_ptr<CheckpointUpload> upload_;  ///< where the run has a save_folder
  std::thread thread_;
  std::atomic<bool> given_up_ = false;
  bool under_way_ = false;
  // Of the save under way; while the thread runs, the training thread leaves them alone:
  std::int64_t step_ = 0;
  SamplerState sampler_;
  double begun_at_s_ = 0, blocking_s_ = 0, written_at_s_ = 0, bytes_ = 0;
};

struct LoadedCheckpoint {
  std::int64_t step = 0;
  SamplerState sampler;
  CopyLevel level = CopyLevel::storage;
  std::filesystem::path path;  ///< in storage; empty for copies in memory, unless storage has that last step whole
  std::vector<PassedOver> passed_over;
  std::string adapter_base;        ///< the weights that its adapter is put on; empty: it names none
  std::vector<std::string> notes;  ///< what the log says of it: settings that were changed on purpose
};

using UnfitState = std::function<std::string(std::int64_t step, const SamplerState& sampler)>;

/// Collective. Takes the newest step that is whole and undamaged in the memory of nodes (`copies`, where there are
/// any), in storage, or at the run's save_folder (`at_store`, where it has one), from where it is fetched; of one step
/// the nearest that is undamaged. In storage, the ranks of the first replica verify sizes and checksums, read what they
/// own and broadcast it to the ranks that keep copies. What cannot be read is named on stderr and passed over. Nothing
/// there: nullopt. Throws Error{usage} on every rank when checkpoints are in storage and neither they nor copies can be
/// read, and when the one taken is of another run: of another model, optimizer or order of samples. `unfit`: why the
/// run cannot go on from a state that can be read; "" = it can. Such a one is passed over, too.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::filesystem::path& folder, const RunSpec& run,
                                                       std::vector<ShardedGroup>& groups, Communicators& communicators,
                                                       LocalLoader* copies, const UnfitState& unfit,
                                                       StoreCheckpoints* at_store = nullptr);

}  // namespace wt
