// Read and write rates of a store, compared with the same bytes on the local disk and with the client's own limit.
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
  std::filesystem::path folder;     ///< on the local disk: source and target of the files
  std::vector<std::int64_t> bytes;  ///< sizes of a file
  int samples = 9;
  std::uint64_t seed = 17;  ///< of the bytes, which are incompressible
};

/// Rows "checkpoint_write" and "checkpoint_read" of the store, "disk_write" and "disk_read" of the folder (both with
/// fsync), "client_write" and "client_read" against a LoopbackStore of this process, each of one rank. Sizes take
/// turns, so that a slow phase of the network affects all. Every read goes to a file with fsync, from cold pages where
/// there is a page cache. Bytes from the store and the disk are compared. The store's files are named
/// "windtunnel-bench-..." and removed. An error is recorded as the failure of its row. `starting` is called before each
/// measurement.
Profile bench_store(const StoreBenchOptions& options, const std::function<void(const std::string&)>& starting);

/// Facts for the profile's fingerprint: the address, the endpoint's host, the memory of this machine.
std::map<std::string, std::string> store_facts(const std::string& address);

}  // namespace wt
