// Locks shared by the processes of a machine: numbered places of one file. When a process ends, even if it is killed,
// its locks are released. Threads of one holder do not exclude each other.
#pragma once
#include <cstdint>
#include <filesystem>

#include "configs/base/descriptor.hpp"

namespace wt::detail {

class RangeLock {
 public:
  /// Creates the file if it does not exist. Throws Error{runtime}.
  explicit RangeLock(const std::filesystem::path& file);

  bool try_lock(std::uint64_t place);
  void lock(std::uint64_t place);
  /// Shared by any number of holders, but exclusive with lock().
  void lock_shared(std::uint64_t place);
  void unlock(std::uint64_t place);
  /// Whether another process holds the place.
  bool held_elsewhere(std::uint64_t place);
  int descriptor() const { return opened_.get(); }

 private:
  bool set(int command, short kind, std::uint64_t place);

  std::filesystem::path file_;
  Descriptor opened_;
};

}  // namespace wt::detail
