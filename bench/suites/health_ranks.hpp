// The check of a whole fleet, with one rank per device: `windtunnel health --fabric`. The first rank of every node
// checks the node, every rank stresses its own GPU, and then neighbouring nodes run all-reduces: all rails of a pair at
// once, half of the pairs at a time (bench/health/fabric.hpp). Rank 0 merges the observations.
#pragma once
#include <filesystem>

namespace wt {

struct HealthRankOptions {
  bool quick = false;                   ///< seven repetitions instead of 15
  std::filesystem::path storage = ".";  ///< folder that each node writes to
  /// Treats every rank as a node on the CPU and measures only all-reduces, to test on one machine.
  bool rank_is_node = false;
};

/// Runs in a rank of a launcher or of run_ranks(). A node is the ranks with one WINDTUNNEL_NODE, or of one host if that
/// is not set. Rank 0 writes the fleet (windtunnel.health/1) to `output`.
void check_as_rank(const HealthRankOptions& options, const std::filesystem::path& output);

}  // namespace wt
