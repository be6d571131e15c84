// Algorithms of an all-reduce, by name.
//   ring          each GPU passes its part on to the next, twice round
//   tree          a chain inside each node, and two binary trees over the nodes that share the buffer (each node is a
//                 leaf of one tree and an inner node of the other)
//   nvls          the NVSwitch adds what it reads from the node's GPUs, and copies the sum to them (NVLink SHARP)
//   nvls_tree     nvls inside each node, and the two trees over the nodes
//   hierarchical  reduce-scatter inside each node, a ring over the nodes for each part, all-gather inside each node:
//                 not in NCCL, but in other libraries
#pragma once
#include <array>
#include <optional>
#include <string>

namespace wt {

enum class AllReduce { ring, tree, nvls, nvls_tree, hierarchical };
constexpr std::array<AllReduce, 5> kAllReduces = {AllReduce::ring, AllReduce::tree, AllReduce::nvls,
                                                  AllReduce::nvls_tree, AllReduce::hierarchical};
std::string to_string(AllReduce algorithm);
std::optional<AllReduce> all_reduce_named(const std::string& name);  ///< none = no such algorithm

}  // namespace wt
