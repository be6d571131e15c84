// Locks that processes of one machine share: numbered places of one file, of which a process holds any. A process that
// ends, be it killed, gives up what it holds. Threads of one holder do not exclude one another.
#pragma once
#include <cstdint>
#include <filesystem>

namespace wt::detail {

class RangeLock {
 public:
  /// Makes the file if it is not there. Throws Error{runtime}.
  explicit RangeLock(const std::filesystem::path& file);
  ~RangeLock();
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;

  bool try_lock(std::uint64_t place);
  void lock(std::uint64_t place);
  /// Held by any number at once, but not beside lock().
  void lock_shared(std::uint64_t place);
  void unlock(std::uint64_t place);
  /// By another process; what this one holds does not count.
  bool held_elsewhere(std::uint64_t place);
  int descriptor() const { return descriptor_; }

 private:
  bool set(int command, short kind, std::uint64_t place);

  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace wt::detail
