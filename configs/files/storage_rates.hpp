// Measured rates of checkpoint storage, from rows checkpoint_write and checkpoint_read of profiles
// (sim/cost/calibrate). A save or restore takes
//   latency + max(bytes of the fullest node / rate of one node, all bytes / rate of all nodes).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

/// Rate of one node with this many active ranks.
struct NodeRate {
  std::int64_t ranks = 0;
  double Bps = 0;
};

/// Rates of one direction.
struct StorageRate {
  double latency_s = 0;
  std::vector<NodeRate> node = {};  ///< ascending by ranks, rates not descending; empty = not measured
  std::int64_t nodes = 0;           ///< the most nodes measured at once
  double all_Bps = 0;               ///< the highest total rate measured
  bool limited = false;             ///< more nodes did not raise the total: all_Bps is the store's limit
  std::int64_t largest_bytes = 0;   ///< largest size of one rank in any row
  std::int64_t rows = 0;            ///< number of measurements
  Provenance evidence = {};

  bool measured() const { return !node.empty(); }
  /// Rate of one node: proportional to ranks below the smallest measured number, linear between measurements, constant
  /// above the largest. Requires measured().
  double node_Bps(std::int64_t ranks) const;
};

struct StorageRates {
  std::string store = {};  ///< "s3://bucket/prefix"; empty = a file system
  StorageRate write = {}, read = {};
};

/// Whether measurements of one apply to the other: two file systems, or the same bucket ("s3://bucket", any prefix).
bool same_store(const std::string& a, const std::string& b);
/// The address, or "a file system" if it is empty.
std::string store_words(const std::string& store);

}  // namespace wt
