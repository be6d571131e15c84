// Reports progress of storage to the ranks of a generation and to the launcher, so that they wait as long as bytes
// move, for any amount of data.
#pragma once
#include <mutex>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// A key in the generation's store. Its value changes as long as some rank's storage makes progress.
inline constexpr const char* kStorageMoves = "storage/moves";

class StorageProgress {
 public:
  /// `store` must outlive this and be thread-safe.
  StorageProgress(SharedStore& store, std::int64_t rank) : store_(store), rank_(rank) {}
  /// Call after reading or writing bytes, on any thread. Published at most every ten seconds. Ignores errors of the
  /// store, which its other users will find.
  void moves() noexcept;

 private:
  SharedStore& store_;
  const std::int64_t rank_;
  std::mutex mutex_;
  double told_at_s_ = 0;
};

}  // namespace wt
