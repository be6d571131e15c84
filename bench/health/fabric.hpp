// Plans all-reduces between neighbouring nodes, and merges what their ranks observed. Nodes form a ring in the order of
// their ranks. In a round no node is in two pairs, so that a pair's time is its own. There are two rounds for any size
// of fleet, three for an odd number of nodes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

/// Ranks of one node, ascending. A rank's index among them is its rail: rank i uses the NIC nearest to GPU i.
struct FabricNode {
  std::string name;
  std::vector<std::int64_t> ranks;
};
/// Groups ranks with equal entries into nodes, in the order of their first rank.
std::vector<FabricNode> nodes_of(const std::vector<std::string>& node_of_rank);
/// Ranks without a GPU while others have one. Empty where no rank has one.
std::vector<std::int64_t> without_gpu(const std::vector<bool>& gpu_of_rank);
/// Leaves out nodes with a rank in `unable`: their GPUs do not work, and their neighbours would wait for them.
std::vector<FabricNode> nodes_without(std::vector<FabricNode> nodes, const std::vector<std::int64_t>& unable);

/// Every pair of neighbours in a ring of `nodes` once, in rounds without a node in two pairs: (0,1) (2,3) ..., then
/// (1,2) (3,4) ... and the last with the first, which have their own round for an odd number. Two nodes form one pair,
/// one node none.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> ring_rounds(std::size_t nodes);

/// Two ranks that all-reduce together. All pairs of a round run at once, including the rails of one pair of nodes.
struct FabricPair {
  std::string a, b;                   ///< their nodes
  std::string rail;                   ///< "" where nodes have one rank
  std::array<std::int64_t, 2> ranks;  ///< on a, on b
};
/// Two nodes have as many rails together as the smaller one has ranks.
std::vector<std::vector<FabricPair>> fabric_rounds(const std::vector<FabricNode>& nodes);

/// Merges the observations of all ranks into one fleet. Nodes with one name are merged, with all devices. If both ends
/// measured an all-reduce, each repetition counts with the slower end's time. Throws Error{usage} where ends differ in
/// the number of repetitions.
FleetObservation merge_ranks(const std::vector<FleetObservation>& by_rank);

}  // namespace wt
