// Decides which ranks keep which part of the training state in their nodes' memory, so that the state survives the loss
// of a node or a rack.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

/// The location of a rank, and the part of the training state that it holds.
struct CopyPlace {
  std::string node;
  std::string rack;  ///< "" = unknown: the node counts as a rack of its own
  std::int64_t shard = 0;
};

struct CopyPlan {
  std::vector<bool> keeps;           ///< by rank: it writes its part into the memory of its node
  std::vector<std::int64_t> holder;  ///< by rank: the rank on another node that also writes its part; -1 = none
};

/// Every node writes each part that its ranks hold, once. With `peer`, the first rank that holds a part also sends it
/// to a partner node if all holders are on one node, or in one of several racks. The partner is the node at the same
/// position in the next rack (after the last rack comes the first), or the next node if only one rack exists. With a
/// single node no part has a partner (-1).
CopyPlan plan_copies(const std::vector<CopyPlace>& ranks, bool peer);

/// The first rank on each rank's node.
std::vector<std::int64_t> node_leaders(const std::vector<CopyPlace>& ranks);

}  // namespace wt
