// The fleet's own check, one rank a device: `windtunnel health --fabric`. Every node is looked at by its first rank,
// every GPU is stressed by its own, and then neighbouring nodes make all-reduces, all rails of a pair at once and half
// of the pairs at a time (bench/health/fabric.hpp). Rank 0 puts together what all ranks saw.
#pragma once
#include <filesystem>

namespace wt {

struct HealthRankOptions {
  bool quick = false;                   ///< seven repetitions instead of 15
  std::filesystem::path storage = ".";  ///< folder that each node writes in
  /// Every rank is a node of its own and on the CPU, and all-reduces alone are measured: to try the rest on one
  /// machine.
  bool rank_is_node = false;
};

/// In a rank of a launcher or of run_ranks(). A node is the ranks of one WINDTUNNEL_NODE, or of one host where that is
/// not set. Rank 0 writes the fleet (windtunnel.health/1) to `output`.
void check_as_rank(const HealthRankOptions& options, const std::filesystem::path& output);

}  // namespace wt
