// Tells the ranks of a generation, and the launcher, that bytes go to storage or come from there: who waits for it has
// patience as long as it moves, however many they are.
#pragma once
#include <mutex>
#include <string>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// The key in a generation's store whose value changes while some rank's storage moves.
inline constexpr const char* kStorageMoves = "storage/moves";

class StorageProgress {
 public:
  /// `store` outlives this, and answers several threads.
  StorageProgress(SharedStore& store, std::int64_t rank) : store_(store), rank_(rank) {}
  /// Some bytes were read or written, by any thread. Told at most once in ten seconds. Throws nothing: a store that is
  /// gone is found by who waits.
  void moves() noexcept;

 private:
  SharedStore& store_;
  const std::int64_t rank_;
  std::mutex mutex_;
  double told_at_s_ = 0;
};

}  // namespace wt
