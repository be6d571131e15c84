// An object store inside the measuring process: it discards what it receives and returns as many bytes from memory. A
// client's rate against it is the client's own limit: signing, hashing, the loopback device and the disk.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace wt {

class LoopbackStore {
 public:
  /// Listens on a free port of 127.0.0.1. Throws Error{runtime} where that fails.
  LoopbackStore();
  ~LoopbackStore();
  LoopbackStore(const LoopbackStore&) = delete;
  LoopbackStore& operator=(const LoopbackStore&) = delete;
  std::string url() const;  ///< "http://127.0.0.1:PORT"

 private:
  struct LoopbackRequest;
  void accept_connections();
  void serve(int connection);
  std::string answer(const LoopbackRequest& request);

  int listening_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> bytes_;  ///< sizes of files and of unfinished uploads, by path
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
};

}  // namespace wt
