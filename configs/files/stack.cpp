#include "configs/files/stack.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

double element_bytes(YamlMap& map, const std::string& key, double fallback) {
  const double bytes = map.quantity_or(key, parse_bytes, fallback);
  if (bytes < 0) map.fail(key, "needs bytes >= 0");
  return bytes;
}

}  // namespace

std::int64_t loss_chunks_from_yaml(YamlMap& map) {
  const std::string said = map.text("loss_chunks");
  std::int64_t chunks = 0;
  if (said == "liger") return kLigerChunks;
  if (!YAML::convert<std::int64_t>::decode(map.node("loss_chunks"), chunks) || chunks < 1)
    map.fail("loss_chunks", "found '{}', needs a whole number >= 1, or liger", said);
  return chunks;
}

namespace {

MemoryFacts memory_from_yaml(YamlMap map) {
  MemoryFacts m = pytorch_fsdp();
  m.gradient_bytes = element_bytes(map, "gradient", m.gradient_bytes);
  m.optimizer_bytes = element_bytes(map, "optimizer", m.optimizer_bytes);
  m.logit_bytes = element_bytes(map, "logit", m.logit_bytes);
  if (map.has("loss_chunks")) m.loss_chunks = loss_chunks_from_yaml(map);
  m.kept_inputs = map.number_or("kept_inputs", m.kept_inputs, 0);
  m.product_workspace_bytes = element_bytes(map, "product_workspace", m.product_workspace_bytes);
  m.weight_gradients =
      map.enumerator("weight_gradients", std::array{"added", "in_place", "dummy"}, WeightGradients::added);
  m.collective_copies =
      map.enumerator("collective_copies", std::array{"none", "gradients", "both"}, CollectiveCopies::none);
  for (const auto& [key, fact] : {std::pair{"dropout", &m.dropout},
                                  {"fused_gate", &m.fused_gate},
                                  {"attention_by_head", &m.attention_by_head},
                                  {"attention_masks", &m.attention_masks},
                                  {"context_by_heads", &m.context_by_heads},
                                  {"whole_states", &m.whole_states},
                                  {"grouped_products", &m.grouped_products},
                                  {"losses_in_turn", &m.losses_in_turn},
                                  {"late_reuse", &m.late_reuse},
                                  {"resident_weights", &m.resident_weights},
                                  {"gathers_overlap", &m.gathers_overlap},
                                  {"first_rank_only", &m.first_rank_only},
                                  {"last_rank_only", &m.last_rank_only}})
    *fact = map.boolean(key, *fact);
  map.finish();
  return m;
}

std::map<std::string, double> step_from_yaml(YamlMap map) {
  std::map<std::string, double> step;
  for (const char* name : kStackFactors)
    if (map.has(name)) step[name] = map.number(name, 0.01, 100);
  map.finish();
  return step;
}

}  // namespace

bool waits_for_rows(SyncPoints points, std::int64_t expert, Dispatcher dispatcher, bool passes_overlap) {
  if (dispatcher == Dispatcher::hybridep || passes_overlap) return false;
  return points == SyncPoints::experts || (points == SyncPoints::exchange && expert > 1);
}

bool StackSpec::measured_release() const {
  return release.empty() || std::ranges::find(releases, release) != releases.end();
}

void StackSpec::check_layout(const Layout& layout) const {
  const auto refuse = [&](const std::string& key, const std::string& found, const std::string& needed) {
    throw_usage("stack {}: found {} {}, which it does not have; needs {}", name, key, found, needed);
  };
  if (std::ranges::find(dispatchers, layout.dispatcher) == dispatchers.end() && layout.expert > 1)
    refuse("token_dispatcher", to_string(layout.dispatcher),
           joined(dispatchers, " or ", [](Dispatcher each) { return to_string(each); }));
  if (layout.exchange_overlap && !exchange_overlap) refuse("overlap_expert_exchange", "true", "false");
  if (layout.cuda_graphs != CudaGraphs::none && !cuda_graphs)
    refuse("cuda_graphs", to_string(layout.cuda_graphs), "none");
}

StackSpec stack_from_yaml(YamlMap& map) {
  StackSpec stack;
  stack.name = map.text("name");
  stack.frameworks = map.texts("frameworks");
  if (map.has("releases")) stack.releases = map.texts("releases");
  stack.balanced_stages = map.boolean("balanced_stages", false);
  stack.separate_reduce_group = map.boolean("separate_reduce_group", false);
  stack.attention =
      map.enumerator("attention", std::array{"unnamed", "flash2", "cudnn", "unfused"}, AttentionKernels::unnamed);
  if (map.has("grouped_products"))
    stack.grouped_products = map.choice("grouped_products", {kGroupedLibraries.begin(), kGroupedLibraries.end()});
  stack.dispatchers = map.has("dispatchers") ? map.enumerators<Dispatcher>("dispatchers", dispatcher_names())
                                             : std::vector{Dispatcher::alltoall};
  if (stack.dispatchers.empty()) map.fail("dispatchers", "needs one at least");
  stack.exchange_overlap = map.boolean("exchange_overlap", false);
  stack.cuda_graphs = map.boolean("cuda_graphs", false);
  stack.sync_points = map.enumerator("sync_points", std::array{"experts", "exchange", "none"}, SyncPoints::experts);
  stack.fused_routing = map.boolean("fused_routing", false);
  if (map.has("formats"))
    for (const std::string& word : map.texts("formats"))
      stack.formats.push_back(precision_recipe("amp_" + word, "formats").precisions.forward);
  if (map.has("layouts"))
    stack.layouts = map.node("layouts").IsScalar() && map.choice("layouts", {"all"}) == "all"
                        ? StackLayouts::all()
                        : stack_layouts_from_yaml(map.map("layouts"));
  if (map.has("memory")) stack.memory = memory_from_yaml(map.map("memory"));
  stack.memory_assumed = map.boolean("memory_assumed", false);
  if (map.has("step")) stack.step = step_from_yaml(map.map("step"));
  stack.source = map.text("source");
  map.finish();
  return stack;
}

StackSpec read_stack(const std::string& name_or_file) {
  std::error_code none;  // a name may be too long
  const auto at = std::filesystem::exists(name_or_file, none) ? std::string::npos : name_or_file.rfind('@');
  YamlMap map = YamlMap::from_file(find_config("stacks", name_or_file.substr(0, at)));
  StackSpec stack = stack_from_yaml(map);
  if (at == std::string::npos) return stack;
  stack.release = name_or_file.substr(at + 1);
  if (stack.release.empty())
    throw_usage("stack '{}': found no release behind the @, needs one, as {}@{}", name_or_file, stack.name,
                stack.releases.empty() ? "1.0" : stack.releases.back());
  return stack;
}

std::vector<StackSpec> read_stacks() {
  std::vector<StackSpec> stacks;
  for (const auto& entry : std::filesystem::directory_iterator(configs_folder() / "stacks"))
    if (entry.path().extension() == ".yaml") stacks.push_back(read_stack(entry.path().string()));
  std::ranges::sort(stacks, [](const StackSpec& a, const StackSpec& b) { return a.name < b.name; });
  return stacks;
}

StackSpec stack_of(const std::string& framework, const std::vector<StackSpec>& stacks) {
  const StackSpec* best = nullptr;
  std::size_t longest = 0;
  for (const StackSpec& stack : stacks)
    for (const std::string& word : stack.frameworks)
      if (word.size() > longest && lower(framework).find(lower(word)) != std::string::npos)
        best = &stack, longest = word.size();
  if (best != nullptr) return *best;
  StackSpec unknown;
  unknown.name = framework.empty() ? "unknown" : framework;
  return unknown;
}

}  // namespace wt
