// Plain words for what a step program calls its ops, lanes and buffers: the one place that maps their names. Documents
// for machines keep the names.
#pragma once
#include <optional>
#include <string>

#include "sim/program/program.hpp"

namespace wt {

/// What memory is for, in the order in which charts stack it.
enum class MemoryUseKind { weights, gradients, optimizer, activations, rows, communication, working };
inline constexpr std::size_t kMemoryUseKinds = 7;
/// "saved activations".
std::string to_string(MemoryUseKind kind);

struct BufferWords {
  std::string text;  ///< "tokens' rows at their experts"
  MemoryUseKind kind = MemoryUseKind::working;
};
/// Of a buffer's name, also "transient" of MemoryReplay::at_peak. Empty for a name that it does not know.
std::optional<BufferWords> find_buffer_words(const std::string& name);
/// The same; of a name that it does not know, the name itself as working memory.
BufferWords buffer_words(const std::string& name);

/// Of a parameter group: "attention and dense" of dense; "" of none.
std::string group_words(Group group);
/// The group that to_string() names so; none of another name.
std::optional<Group> group_named(const std::string& name);

/// "gather expert weights, backward"; of different ops different words. Without a direction what is done
/// once a step or once a microbatch.
std::string op_words(Action action, Direction direction, Group group);
/// Of an instance's id: "mb0.L19.experts.fwd" is "layer 19: experts, forward"; "mb1.L19..." is "microbatch 1, layer 19:
/// ...". Empty for an id that it does not know.
std::optional<std::string> find_op_words(const std::string& id);
/// The same; the id itself where it does not know it.
std::string op_words(const std::string& id);

/// "gathers".
std::string lane_words(Lane lane);

}  // namespace wt
