// Plain words for a step program's ops, lanes and buffers. This is the only place that translates their names; machine
// formats keep the names.
#pragma once
#include <optional>
#include <string>

#include "sim/program/program.hpp"

namespace wt {

/// The use of memory, in the order in which charts stack it.
enum class MemoryUseKind { weights, gradients, optimizer, activations, rows, communication, working };
inline constexpr std::size_t kMemoryUseKinds = 7;
/// "saved activations".
std::string to_string(MemoryUseKind kind);

struct BufferWords {
  std::string text;  ///< "tokens' rows at their experts"
  MemoryUseKind kind = MemoryUseKind::working;
};
/// Words for a buffer's name, including "transient" of MemoryMoment::bytes_of. Empty for an unknown name.
std::optional<BufferWords> find_buffer_words(const std::string& name);
/// The same; an unknown name is returned itself, as working memory.
BufferWords buffer_words(const std::string& name);

/// Words for a parameter group: "attention and dense" for dense, "" for none.
std::string group_words(Group group);
/// The inverse of to_string(Group); empty for an unknown name.
std::optional<Group> group_named(const std::string& name);

/// "gather expert weights, backward". Different ops have different words. Actions that happen once a step or once a
/// microbatch have no direction.
std::string op_words(Action action, Direction direction, Group group);
/// Words for an op's id: "mb0.L19.experts.fwd" is "layer 19: experts, forward"; "mb1.L19..." is "microbatch 1, layer
/// 19:
/// ...". Empty for an unknown id.
std::optional<std::string> find_op_words(const std::string& id);
/// The same; an unknown id is returned itself.
std::string op_words(const std::string& id);

/// "gathers".
std::string lane_words(Lane lane);

}  // namespace wt
