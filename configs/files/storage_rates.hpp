// What a place that holds checkpoints was measured to give: the result of rows checkpoint_write and checkpoint_read of
// profiles (sim/cost/calibrate). A save or restore takes
//   latency + max(bytes of the fullest node / what one node gets, all bytes / what all nodes get).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

/// Bytes a second of one node on which so many ranks are at work.
struct NodeRate {
  std::int64_t ranks = 0;
  double Bps = 0;
};

/// One direction.
struct StorageRate {
  double latency_s = 0;
  std::vector<NodeRate> node = {};  ///< ranks ascending, rates not descending; empty = nobody measured
  std::int64_t nodes = 0;           ///< the most that were at work at once
  double all_Bps = 0;               ///< the most that was seen of all of them together
  bool limited = false;             ///< more nodes gave no more: all_Bps is what the store gives at most
  std::int64_t largest_bytes = 0;   ///< of one rank, in a row
  std::int64_t rows = 0;
  Provenance evidence = {};

  bool measured() const { return !node.empty(); }
  /// Of one node: in proportion below the fewest ranks that were measured, linear between two, beyond the most as
  /// there. Needs measured().
  double node_Bps(std::int64_t ranks) const;
};

struct StorageRates {
  std::string store = {};  ///< "s3://bucket/prefix"; empty = a file system
  StorageRate write = {}, read = {};
};

/// Whether rows of one speak for the other: both of file systems, or of one bucket ("s3://bucket", whatever the
/// prefix).
bool same_store(const std::string& a, const std::string& b);
/// "a file system" for the empty address.
std::string store_words(const std::string& store);

}  // namespace wt
