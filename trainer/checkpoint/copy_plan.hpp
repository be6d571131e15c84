// Who keeps which part of the training state in its node's memory, so that the loss of a node or a rack loses nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

/// Where a rank is, and the part of the training state that it holds: the number of its first copy, from 0.
struct CopyPlace {
  std::string node;
  std::string rack;  ///< "" = unknown: the node is taken for a rack of its own
  std::int64_t shard = 0;
};

struct CopyPlan {
  std::vector<bool> keeps;           ///< by rank: writes its own part for its node
  std::vector<std::int64_t> holder;  ///< by rank: the rank on another node that writes its part, too; -1 = none
};

/// A part is written once on each node that holds it. Where all of these are one node, or in one rack of several, and
/// `peer` asks for it, the first sends it to a partner: the node at the same place in the next rack, around the end, or
/// the next node where there is one rack. -1 where there is one node.
CopyPlan plan_copies(const std::vector<CopyPlace>& ranks, bool peer);

/// The first rank on each rank's node.
std::vector<std::int64_t> node_leaders(const std::vector<CopyPlace>& ranks);

}  // namespace wt
