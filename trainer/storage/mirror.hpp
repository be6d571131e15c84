// Checkpoints of a run at a store, in the order that makes them whole: files, the size of every file, the manifest,
// `latest`. Without a manifest it is no checkpoint, whatever else is there. Names are those of the folder:
// "step-00000012/...".
//
// A run calls, in this order: rank 0 start(); at each save every rank upload() with its own files; when all have, rank
// 0 commit() and retain(). fetch_newest() gives a machine that has nothing a checkpoint folder, verified byte for byte.
#pragma once
#include <functional>
#include <optional>

#include "trainer/storage/store.hpp"

namespace wt {

class CheckpointMirror {
 public:
  /// The store of the run's checkpoints alone. It outlives this.
  explicit CheckpointMirror(Store& store) : store_(store) {}

  /// Steps with a manifest, newest first.
  std::vector<std::int64_t> steps();
  /// Before anybody uploads: ends uploads of earlier processes, and sets aside what is newer than the step that the run
  /// goes on from (0: it begins): such a manifest becomes "manifest.json.passed-over", and its step can be saved again.
  void start(std::int64_t goes_on_from);
  /// Files of the folder, one after the other; each is there whole or not at all. The folder may still be a partial
  /// one, and lack its manifest. Throws StoreFailed{exists} where the step is a checkpoint already.
  void upload(std::int64_t step, const std::filesystem::path& folder, const std::vector<std::string>& names);
  /// Of a whole checkpoint folder, all of whose files are at the store. Throws StoreFailed: a file is missing there or
  /// has another size (damaged), another checkpoint of this step is there (exists), or what the store says.
  void commit(const std::filesystem::path& checkpoint);
  /// Removes all but the newest `keep` checkpoints (-1: none) that are not newer than `newest`: the manifest first.
  void retain(std::int64_t newest, std::int64_t keep);

  /// Writes folder/step-N, whole and verified by the manifest's checksums, or nothing. The folder is made. Throws
  /// StoreFailed{not_found, damaged} where the step is not whole at the store, Error{usage} where its manifest is no
  /// manifest of ours, Error{runtime} where the disk is full or the step is in the folder already.
  std::filesystem::path fetch(std::int64_t step, const std::filesystem::path& folder);
  // The same by several processes that share the folder; each call throws as fetch() does.
  /// folder/step-N.partial/step-N, where the files go.
  static std::filesystem::path fetched_to(std::int64_t step, const std::filesystem::path& folder);
  /// Makes fetched_to(), with the manifest alone, and returns it.
  std::filesystem::path begin_fetch(std::int64_t step, const std::filesystem::path& folder);
  /// Brings every `shares`th file of the manifest, from the `share`th on.
  void fetch_files(const std::filesystem::path& begun, std::uint64_t share, std::uint64_t shares);
  /// When all shares are there: gives the folder its name, which it returns.
  static std::filesystem::path end_fetch(const std::filesystem::path& begun);
  static void abandon_fetch(const std::filesystem::path& begun) noexcept;
  /// The newest step that is whole; `passed_over` hears of each that is not. None: there is none at all. Throws
  /// StoreFailed{damaged} where there are some and none is whole.
  std::optional<std::filesystem::path> fetch_newest(
      const std::filesystem::path& folder,
      const std::function<void(std::int64_t step, const std::string& why)>& passed_over);

 private:
  Store& store_;
};

}  // namespace wt
