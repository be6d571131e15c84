// Functions that traverse the tree of a step program. Only this file defines what a loop repeats, in which order, and
// which neighbours a layer has; docs/architecture.md lists the readers. unroll() (program.hpp) is for_each_issue with
// resolved names and waits. Two readers look at the top of the tree themselves, because they keep or split whole
// passes: sim/bounds/pipeline_path.cpp and sim/program/compose/overlapped_passes.cpp.
#pragma once
#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <span>

#include "sim/program/program.hpp"

namespace wt {

/// Indices of a loop's rounds, in their order.
inline auto rounds_of(const Loop& loop) {
  return std::views::iota(0, std::max(0, loop.count())) |
         std::views::transform([&loop](int i) { return loop.descending ? loop.first - i : loop.first + i; });
}

/// The ops of a list, without those in its loops.
template <class Nodes>
auto ops_of(Nodes& nodes) {
  return nodes | std::views::filter([](const Node& node) { return std::holds_alternative<Op>(node); }) |
         std::views::transform([](auto& node) -> auto& { return std::get<Op>(node); });
}

/// The layer that an op acts on in a round of a loop over `layers` layers: the round's, or a neighbour's if the op
/// gathers for the neighbour. -1: no layer, for ops outside of such loops (`loop_layer` -1), of the embedding or of the
/// head. std::nullopt: the neighbour does not exist, and the op is void.
inline std::optional<int> layer_of(const Op& op, int loop_layer, int layers) {
  if (loop_layer < 0 || op.group == Group::embedding || op.group == Group::head) return -1;
  const int layer = loop_layer + op.layer_delta;
  return layer >= 0 && layer < layers ? std::optional(layer) : std::nullopt;
}

/// The layer that a Ref names in such a round; -1: no layer. std::nullopt: a neighbour that does not exist.
inline std::optional<int> layer_of(const Ref& ref, int loop_layer, int layers) {
  const int layer = ref.layer >= 0 ? ref.layer : loop_layer < 0 ? -1 : loop_layer + ref.layer_delta;
  return loop_layer < 0 || (layer >= 0 && layer < layers) ? std::optional(layer) : std::nullopt;
}

/// The loops around an op or a list.
struct LoopsAround {
  const Loop* microbatches = nullptr;  ///< the innermost loop over microbatches; nullptr = none
  const Loop* layers = nullptr;
  double times = 1;  ///< rounds of all loops around it, including those whose neighbour does not exist

  LoopsAround inside(const Loop& loop) const {
    const bool over_layers = loop.index == Loop::Index::layer;
    return {over_layers ? microbatches : &loop, over_layers ? &loop : layers, times * loop.count()};
  }
};

/// Calls visit(op, loops around it) once for each op, in issue order. Loops for which enter(loop) is false are left
/// out.
template <class Visit, class Enter>
void for_each_op(std::span<const Node> nodes, const Visit& visit, const Enter& enter, const LoopsAround& around = {}) {
  for (const Node& node : nodes)
    if (const Op* op = std::get_if<Op>(&node))
      visit(*op, around);
    else if (const Loop& loop = std::get<Loop>(node); enter(loop))
      for_each_op(loop.body, visit, enter, around.inside(loop));
}
template <class Visit>
void for_each_op(std::span<const Node> nodes, const Visit& visit) {
  for_each_op(nodes, visit, [](const Loop&) { return true; });
}

/// One issue of an op.
struct Issue {
  int microbatch = -1;           ///< -1 outside of loops over microbatches
  int loop_layer = -1;           ///< round of the loop over layers; -1 outside
  int layer = -1;                ///< layer_of
  const Loop* layers = nullptr;  ///< the loop over layers
};

/// Calls visit(op, issue) for each op as often as it is issued, in issue order. `layers`: Program::layers. Void ops are
/// left out.
template <class Visit>
void for_each_issue(std::span<const Node> nodes, int layers, const Visit& visit, Issue at = {}) {
  for (const Node& node : nodes) {
    if (const Op* op = std::get_if<Op>(&node)) {
      const std::optional<int> layer = layer_of(*op, at.loop_layer, layers);
      if (layer) visit(*op, Issue{at.microbatch, at.loop_layer, *layer, at.layers});
      continue;
    }
    const Loop& loop = std::get<Loop>(node);
    Issue inside = at;
    if (loop.index == Loop::Index::layer) inside.layers = &loop;
    for (const int index : rounds_of(loop)) {
      (loop.index == Loop::Index::layer ? inside.loop_layer : inside.microbatch) = index;
      for_each_issue(loop.body, layers, visit, inside);
    }
  }
}

/// To change a program. Calls change(list, loops around it) once for each list of nodes, outer lists first. For a list
/// that several loops share, `loops` are those of the first.
template <class Change>
void for_each_list(std::vector<Node>& nodes, const Change& change, const LoopsAround& around = {},
                   std::set<const void*>&& done = {}) {
  change(nodes, around);
  for (Node& node : nodes)
    if (Loop* loop = std::get_if<Loop>(&node); loop && done.insert(loop->body.shared()).second)
      for_each_list(loop->body.of_all(), change, around.inside(*loop), std::move(done));
}

}  // namespace wt
