// Checkpoints of a run in a store. They are written in this order: files, a check of every file's size, the manifest,
// `latest`. A folder without a manifest is not a checkpoint. Names are those of the local folder: "step-00000012/...".
//
// Calls of a run: rank 0 start(); at each save upload() on every rank for its own files, and after all of them commit()
// and retain() on rank 0. a fetch restores a checkpoint folder, verified byte for byte, on a machine that has none.
#pragma once

#include "trainer/storage/store.hpp"

namespace wt {

class CheckpointMirror {
 public:
  /// `store` must contain only the run's checkpoints, and outlive this.
  explicit CheckpointMirror(Store& store) : store_(store) {}

  /// Steps with a manifest, newest first.
  std::vector<std::int64_t> steps();
  /// Call before any upload. Aborts uploads of earlier processes, and invalidates checkpoints newer than the step from
  /// which the run continues (0: it begins): their manifests become "manifest.json.passed-over", and the steps can be
  /// saved again.
  void start(std::int64_t goes_on_from);
  /// Uploads files of the folder one after the other, each atomically. The folder may still be incomplete and lack its
  /// manifest. Throws StoreFailed{exists} where the step is already a checkpoint.
  void upload(std::int64_t step, const std::filesystem::path& folder, const std::vector<std::string>& names);
  /// Publishes a complete checkpoint folder whose files have been uploaded. Throws StoreFailed: a file is missing in
  /// the store or has another size (damaged), another checkpoint of this step exists (exists), or the store's error.
  void commit(const std::filesystem::path& checkpoint);
  /// Among checkpoints up to step `newest`, removes all but the newest `keep` (-1: removes none), manifests first.
  void retain(std::int64_t newest, std::int64_t keep);

  // A fetch writes folder/step-N, complete and verified by the manifest's checksums, or nothing. Several processes that
  // share the folder may do it together. Each call throws StoreFailed{not_found, damaged} where the step is not
  // complete in the store, Error{usage} where its manifest is not ours, Error{runtime} where the disk is full or the
  // folder already has the step.
  /// folder/step-N.partial/step-N, the temporary location of the files.
  static std::filesystem::path fetched_to(std::int64_t step, const std::filesystem::path& folder);
  /// Creates `folder` and fetched_to() with only the manifest, and returns it.
  std::filesystem::path begin_fetch(std::int64_t step, const std::filesystem::path& folder);
  /// Fetches every `shares`th file of the manifest, starting at file `share`.
  void fetch_files(const std::filesystem::path& begun, std::uint64_t share, std::uint64_t shares);
  /// After all shares are done: renames the folder, and returns the new path.
  static std::filesystem::path end_fetch(const std::filesystem::path& begun);
  static void abandon_fetch(const std::filesystem::path& begun) noexcept;

 private:
  Store& store_;
};

}  // namespace wt
