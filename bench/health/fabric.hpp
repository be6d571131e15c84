// The plan of all-reduces between neighbouring nodes, and what the ranks that made them saw, put together: nodes are a
// ring in the order of their ranks, and no node is in two pairs at once, so that a pair's time is its own. Two rounds,
// however large the fleet, three where the number of nodes is odd.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

/// Ranks of one node, ascending. The place of a rank among them is its rail: rank i talks through the NIC nearest to
/// GPU i.
struct FabricNode {
  std::string name;
  std::vector<std::int64_t> ranks;
};
/// Ranks whose entries are equal are a node; nodes in the order of their first rank.
std::vector<FabricNode> nodes_of(const std::vector<std::string>& node_of_rank);
/// Ranks without a GPU where others have one: at fault. Empty where no rank has one.
std::vector<std::int64_t> without_gpu(const std::vector<bool>& gpu_of_rank);
/// Those of which no rank is `unable`: the others have GPUs that do not work, and would keep their neighbours waiting.
std::vector<FabricNode> nodes_without(std::vector<FabricNode> nodes, const std::vector<std::int64_t>& unable);

/// Every two neighbours of a ring of `nodes` once, in rounds in which no node is twice: (0,1) (2,3) ..., then (1,2)
/// (3,4) ... with the last and the first, which are a round of their own where the number is odd. Two nodes are one
/// pair, one none.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> ring_rounds(std::size_t nodes);

/// Two ranks that add up together. All of a round do so at once, the rails of a pair of nodes among them.
struct FabricPair {
  std::string a, b;                   ///< their nodes
  std::string rail;                   ///< "" where a node has one rank
  std::array<std::int64_t, 2> ranks;  ///< on a, on b
};
/// A node with fewer ranks than its neighbour has fewer rails with it.
std::vector<std::vector<FabricPair>> fabric_rounds(const std::vector<FabricNode>& nodes);

/// What all ranks saw, as one fleet: nodes of one name are one, with the devices of all; of all-reduces that both ends
/// measured every repetition counts as long as the slower end says. Throws Error{usage} where ends differ in the number
/// of repetitions.
FleetObservation merge_ranks(const std::vector<FleetObservation>& by_rank);

}  // namespace wt
