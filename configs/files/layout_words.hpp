// A layout in the words of the framework that trains it.
#pragma once
#include <string>

namespace wt {

struct Layout;
struct StackSpec;

/// Degrees as users of the stack write them. Megatron's stacks: "TP2 PP4 VPP2 EP8 ETP1 DP16, distributed optimizer".
/// torchtitan: "data_parallel_shard_degree 64, expert_parallel_degree 4". AutoModel: "dp_size 64, ep_size 4". Other
/// stacks: Layout::name(). Degrees of 1 are left out, but not all of them.
std::string layout_words(const Layout& layout, const StackSpec& stack);

/// The same for table cells and lists: Megatron's words are short, for other stacks it is Layout::name().
std::string layout_label(const Layout& layout, const StackSpec& stack);

/// What a layout has besides degrees and sharding, each with a space in front: " hybridep partial graphs".
std::string layout_extras(const Layout& layout);

}  // namespace wt
