// Measured collectives: one row a size. Schema of the CSV: source, gpu, nodes, gpus, fabric, collective, bytes,
// time_us, algbw_GBps, busbw_GBps, note; bytes by the convention of nccl-tests (the full buffer of a gather or
// scatter).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

struct CollectiveRow {
  std::int64_t line = 0;
  std::string source, gpu, fabric, collective, note;
  std::int64_t nodes = 1, gpus = 1;
  std::int64_t gpus_per_node = 8;   ///< that share a node's adapters
  std::int64_t fewest_on_node = 0;  ///< ranks of the node with fewest; 0 = as many on each
  double bytes = 0;                 ///< kPlateauBytes where the file gives a plateau and no size
  bool bytes_assumed = false;
  double seconds = 0;         ///< from the bandwidth where the file gives no time; 0 where it gives neither
  std::string unusable = {};  ///< why nothing can be predicted of this row

  /// Ranks of the node that has fewest of them, at least 1.
  double fewest() const {
    return fewest_on_node > 0 ? static_cast<double>(fewest_on_node)
                              : static_cast<double>(gpus) / static_cast<double>(nodes);
  }
};
constexpr double kPlateauBytes = 16.0 * (1 << 30);  // where published sweeps end

/// Share of `bytes` that each rank sends over its slowest link in a ring: bus bandwidth = share * bytes / time.
/// 2 (n-1)/n for an all-reduce, 1 for a broadcast and for a send to the next rank, (n-1)/n otherwise (nccl-tests,
/// PERFORMANCE.md).
double bus_share(const std::string& collective, std::int64_t ranks);

/// Ranks of the node with fewest: what a text says ("8+4 ranks"), where these are as many nodes and GPUs in sum; else,
/// where GPUs do not divide into nodes, what the last node has after full ones, or of an even spread.
std::int64_t fewest_on_node(const std::string& text, std::int64_t nodes, std::int64_t gpus, std::int64_t gpus_per_node);

/// Every row of the table, in order; one with fewer than 2 GPUs, more nodes than GPUs, or a number below 0 says so in
/// `unusable`. Throws Error{usage} as read_csv does.
std::vector<CollectiveRow> read_collective_rows(const std::filesystem::path& file);

}  // namespace wt
