#include "planner/search/space_member.hpp"

#include <limits>

#include "planner/search/layout_space.hpp"

namespace wt {
namespace {

struct SearchAxis {
  const char* key;
  std::string (*of)(const Layout&);
};

std::string word(bool value) { return value ? "true" : "false"; }

/// The policy in words. `products` includes `block`.
std::string words(const Recompute& recompute) {
  Recompute out;
  for (const Recompute::Rule& rule : recompute.rules())
    if (rule.module != Module::block || !recompute.has(Module::products)) out.add(rule);
  out.compression = recompute.compression;
  return to_string(out);
}

/// Axes that are the same for all members of a group.
const std::vector<SearchAxis>& computing_axes() {
  static const std::vector<SearchAxis> axes{
      {"tensor_parallel_degree", [](const Layout& l) { return std::to_string(l.tensor); }},
      {"sequence_parallel", [](const Layout& l) { return word(l.sequence_parallel); }},
      {"pipeline_parallel_degree", [](const Layout& l) { return std::to_string(l.pipeline); }},
      {"pipeline_schedule", [](const Layout& l) { return l.pipeline > 1 ? to_string(l.schedule) : ""; }},
      {"virtual_pipeline_degree", [](const Layout& l) { return std::to_string(l.virtual_stages); }},
      {"context_parallel_degree", [](const Layout& l) { return std::to_string(l.context); }},
      {"context_parallel_ring", [](const Layout& l) { return word(l.context > 1 && l.context_ring); }},
      {"expert_degrees", [](const Layout& l) { return std::to_string(l.expert); }},
      {"expert_tensor_parallel_degree",
       [](const Layout& l) { return std::to_string(l.whole_experts ? std::int64_t{1} : l.tensor); }},
      {"microbatch", [](const Layout& l) { return std::to_string(l.microbatch); }},
      {"recompute", [](const Layout& l) { return words(l.recompute); }}};
  return axes;
}

/// Axes in which members of a group differ.
const std::vector<SearchAxis>& keeping_axes() {
  static const std::vector<SearchAxis> axes{
      {"shard_sizes", [](const Layout& l) { return std::to_string(l.shard); }},
      {"optimizer_shard_degree", [](const Layout& l) { return std::to_string(l.shard * l.optimizer_shard); }},
      {"reshard_after_forward", [](const Layout& l) { return word(l.reshard_after_forward); }},
      {"gradient_reduction",
       [](const Layout& l) { return std::string(l.reduce_every_microbatch ? "microbatch" : "step"); }},
      {"token_dispatcher", [](const Layout& l) { return l.expert > 1 ? to_string(l.dispatcher) : ""; }},
      {"overlap_expert_exchange", [](const Layout& l) { return word(l.exchange_overlap); }},
      {"cuda_graphs", [](const Layout& l) { return to_string(l.cuda_graphs); }}};
  return axes;
}

std::vector<std::string> values(const std::vector<SearchAxis>& axes, const Layout& layout) {
  std::vector<std::string> out;
  for (const SearchAxis& axis : axes) out.push_back(axis.of(layout));
  return out;
}

std::size_t different(const std::vector<SearchAxis>& axes, const std::vector<std::string>& wanted,
                      const Layout& layout) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].of(layout) != wanted[i]) ++count;
  return count;
}

void add_differences(const std::vector<SearchAxis>& axes, const std::vector<std::string>& wanted, SpaceMember& out) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (std::string has = axes[i].of(*out.nearest); has != wanted[i])
      out.differences.push_back({axes[i].key, wanted[i], std::move(has)});
}

}  // namespace

SpaceMember find_in_space(const SearchProblem& problem, const Layout& layout) {
  const auto computing = values(computing_axes(), layout), keeping = values(keeping_axes(), layout);
  const LayoutSpace space(problem);
  SpaceMember out;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const LayoutGroup& group : space.groups()) {
    out.layouts += group.members;
    const std::size_t of_group = different(computing_axes(), computing, group.layout);
    if (of_group >= least) continue;
    for (const Layout& member : space.members(group))
      if (const std::size_t all = of_group + different(keeping_axes(), keeping, member); all < least)
        least = all, out.nearest = member;
  }
  if (!out.nearest) return out;
  add_differences(computing_axes(), computing, out);
  add_differences(keeping_axes(), keeping, out);
  return out;
}

}  // namespace wt
