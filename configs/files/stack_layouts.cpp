#include "configs/files/stack_layouts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/check_lora.hpp"

namespace wt {
namespace {

/// Words of a list as values, in the file's order; each only once.
template <typename T>
std::vector<T> values(YamlMap& map, const std::string& key, const std::vector<std::pair<std::string, T>>& words,
                      std::vector<T> fallback) {
  if (!map.has(key)) return fallback;
  std::vector<T> out;
  for (const std::string& word : map.texts(key)) {
    const auto found = std::ranges::find_if(words, [&](const auto& known) { return known.first == word; });
    if (found == words.end()) map.fail(key, "found '{}', allowed {}", word, joined(std::views::keys(words), ", "));
    if (std::ranges::find(out, found->second) != out.end())
      map.fail(key, "found '{}' twice, needs each word once", word);
    out.push_back(found->second);
  }
  if (out.empty() && !fallback.empty()) map.fail(key, "needs one at least");
  return out;
}

std::vector<Recompute> policies(YamlMap& map, std::vector<Recompute> fallback) {
  if (!map.has("recompute")) return fallback;
  std::vector<Recompute> out;
  for (const std::string& word : map.texts("recompute")) try {
      out.push_back(recompute_from_string(word));
    } catch (const Error& error) {
      map.fail("recompute", error.what());
    }
  return out;
}

template <typename T>
bool has(const std::vector<T>& values, const T& value) {
  return std::ranges::find(values, value) != values.end();
}

}  // namespace

StackLayouts StackLayouts::all() {
  StackLayouts all;
  all.optimizer_shard = all.tensor = all.interleaved = all.smaller_last_microbatch = true;
  all.reshard_after_forward = {true, false};
  all.reduce_every_microbatch = {true, false};
  all.schedules = {Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::dualpipe_v};
  all.context_ring = {false, true};
  all.recompute =
      mapped(std::array{"none", "core", "attention", "experts", "attention+experts", "moe_act", "norm+moe_act",
                        "core+moe_act", "mla_up_proj", "mla_up_proj+norm+moe_act", "products+block", "block"},
             recompute_from_string);
  all.compression = {Compression::int8, Compression::fp8};
  all.placement = PlacementSupport::copies;
  all.sequence_parallel = {true, false};
  all.recompute_also = every_module();
  all.recompute_anywhere = true;
  return all;
}

StackLayouts StackLayouts::with_adapters() const {
  StackLayouts out = *this;
  out.replicas = replicas || optimizer_shard;  // each replica keeps its own optimizer state
  out.optimizer_shard = out.tensor = out.recompute_anywhere = false;
  out.interleaved = false;
  out.schedules.clear(), out.overlaps.clear(), out.recompute_also.clear();
  std::erase_if(out.recompute, [](const Recompute& policy) { return !recomputes_whole_blocks(policy); });
  if (out.recompute.empty()) out.recompute = {Recompute::none};
  if (placement == PlacementSupport::copies) out.placement = PlacementSupport::order;
  return out;
}

bool StackLayouts::runs(const Recompute& wanted) const {
  return std::ranges::all_of(wanted.rules(), [&](const Recompute::Rule& rule) {
    const bool known = has(recompute_also, rule.module) ||
                       std::ranges::any_of(recompute, [&](const Recompute& r) { return r.has(rule.module); });
    const bool worded = rule.module == Module::block && std::ranges::all_of(rule.blocks, [&](const auto& blocks) {
                          return has(recompute_blocks, blocks.which);
                        });
    return known && (rule.blocks.empty() || worded || recompute_anywhere);
  });
}

void StackLayouts::check(const Layout& l, const std::string& name) const {
  const auto needs = [&](bool there, const std::string& what) {
    if (!there) throw_usage("stack {}: found {}, which its trainer does not run", name, what);
  };
  needs(l.replicate == 1 || replicas || optimizer_shard, fmt::format("data_parallel_replicate_degree {}", l.replicate));
  needs(l.replicate == 1 || l.expert == 1 || expert_replicas,
        fmt::format("data_parallel_replicate_degree {} with expert_parallel_degree {}", l.replicate, l.expert));
  needs(l.optimizer_shard == 1 || optimizer_shard,
        fmt::format("optimizer_shard_degree {}", l.shard * l.optimizer_shard));
  needs(l.tensor == 1 || tensor, fmt::format("tensor_parallel_degree {}", l.tensor));
  needs(l.tensor == 1 || has(sequence_parallel, l.sequence_parallel),
        fmt::format("tensor_parallel_degree {} with sequence_parallel: {}", l.tensor, l.sequence_parallel));
  needs(l.pipeline == 1 || has(schedules, l.schedule),
        fmt::format("pipeline_parallel_degree {} with pipeline_schedule {}", l.pipeline, to_string(l.schedule)));
  needs(l.virtual_stages == 1 || interleaved || l.schedule == Schedule::dualpipe_v,
        fmt::format("virtual_pipeline_degree {}", l.virtual_stages));
  needs(l.context == 1 || has(context_ring, l.context_ring),
        fmt::format("context_parallel_degree {} with context_parallel_ring: {}", l.context, l.context_ring));
  needs(l.pipeline > 1 || has(reshard_after_forward, l.reshard_after_forward),
        fmt::format("reshard_after_forward: {}", l.reshard_after_forward));
  needs(l.pipeline > 1 || has(reduce_every_microbatch, l.reduce_every_microbatch),
        fmt::format("gradient_reduction: {}", l.reduce_every_microbatch ? "microbatch" : "step"));
  needs(l.recompute.compression == Compression::none || has(compression, l.recompute.compression),
        "activation_compression " + to_string(l.recompute.compression));
  needs(runs(l.recompute), "recompute " + to_string(l.recompute));
  needs(!l.exchange_overlap || has(overlaps, l.schedule),
        fmt::format("overlap_expert_exchange with pipeline_schedule {}", to_string(l.schedule)));
  needs(l.placement.empty() || placement != PlacementSupport::none, "expert_placement");
}

StackLayouts stack_layouts_from_yaml(YamlMap map) {
  StackLayouts s;
  const std::string replicas = map.choice("replicas", {"none", "without_experts", "any"}, "any");
  s.replicas = replicas != "none", s.expert_replicas = replicas == "any";
  s.optimizer_shard = map.boolean("optimizer_shard", s.optimizer_shard);
  s.reshard_after_forward =
      values<bool>(map, "reshard_after_forward", {{"true", true}, {"false", false}}, s.reshard_after_forward);
  s.reduce_every_microbatch =
      values<bool>(map, "gradient_reduction", {{"microbatch", true}, {"step", false}}, s.reduce_every_microbatch);
  s.tensor = map.boolean("tensor", s.tensor);
  s.sequence_parallel = values<bool>(map, "sequence_parallel", {{"true", true}, {"false", false}}, s.sequence_parallel);
  const auto schedules =
      mapped(schedule_names(), [](const std::string& word) { return std::pair(word, *schedule_from_string(word)); });
  s.schedules = values<Schedule>(map, "pipeline", schedules, s.schedules);
  s.interleaved = map.boolean("interleaved", s.interleaved);
  s.overlaps = values<Schedule>(map, "overlap", schedules, s.overlaps);
  s.context_ring = values<bool>(map, "context", {{"gathered", false}, {"ring", true}}, s.context_ring);
  s.recompute = policies(map, s.recompute);
  using Which = Recompute::Blocks::Which;
  s.recompute_blocks =
      values<Which>(map, "recompute_blocks",
                    {{"first", Which::first}, {"chunk", Which::chunk}, {"every", Which::every}}, s.recompute_blocks);
  s.recompute_also =
      values<Module>(map, "recompute_also", mapped(every_module(), [](Module m) { return std::pair(to_string(m), m); }),
                     s.recompute_also);
  s.recompute_anywhere = map.boolean("recompute_anywhere", s.recompute_anywhere);
  s.compression =
      values<Compression>(map, "compression", {{"int8", Compression::int8}, {"fp8", Compression::fp8}}, s.compression);
  s.smaller_last_microbatch = map.boolean("smaller_last_microbatch", s.smaller_last_microbatch);
  s.placement =
      values<PlacementSupport>(
          map, "placement",
          {{"none", PlacementSupport::none}, {"order", PlacementSupport::order}, {"copies", PlacementSupport::copies}},
          {s.placement})
          .front();
  map.finish();
  return s;
}

}  // namespace wt
