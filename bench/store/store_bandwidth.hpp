// How fast a store takes and gives files, beside the same bytes on the local disk and beside what the client itself can
// do.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "trainer/storage/store.hpp"

namespace wt {

struct StoreBenchOptions {
  std::string address;              ///< s3://bucket/prefix, or a folder
  std::filesystem::path folder;     ///< on the local disk, where files come from and go to
  std::vector<std::int64_t> bytes;  ///< sizes of a file
  int samples = 9;
  std::uint64_t seed = 17;  ///< of the bytes, which no store can make smaller
};

/// Rows "checkpoint_write" and "checkpoint_read" of the store, "disk_write" and "disk_read" of the folder (both with
/// fsync), "client_write" and "client_read" against a store of this process (LoopbackStore), each of one rank. Sizes
/// take turns, so that a slow phase of the network meets all. Every read goes to a file with fsync, from cold pages
/// where a page cache is between, and what the store and the disk give is compared. The store keeps nothing: files are
/// named "windtunnel-bench-..." and removed. An error of a size is its row's failure. `told` hears what is measured
/// next.
Profile bench_store(const StoreBenchOptions& options, const std::function<void(const std::string&)>& told);

/// Facts for the profile's fingerprint: the address, the endpoint's host, the memory of this machine.
std::map<std::string, std::string> store_facts(const std::string& address);

}  // namespace wt
