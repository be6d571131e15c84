#include "configs/spec/stack.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "configs/spec/find.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/quantity.hpp"
#include "configs/spec/support/text.hpp"
#include "configs/spec/support/yaml.hpp"

namespace wt {
namespace {

double element_bytes(YamlMap& map, const std::string& key, double fallback) {
  const double bytes = map.quantity_or(key, parse_bytes, fallback);
  if (bytes < 0) map.fail(key, "needs bytes >= 0");
  return bytes;
}

WeightGradients weight_gradients(YamlMap& map) {
  const std::string word = map.choice("weight_gradients", {"added", "in_place", "dummy"}, "added");
  return word == "added"      ? WeightGradients::added
         : word == "in_place" ? WeightGradients::in_place
                              : WeightGradients::dummy;
}

MemoryFacts memory_from_yaml(YamlMap map) {
  MemoryFacts m = pytorch_fsdp();
  m.gradient_bytes = element_bytes(map, "gradient", m.gradient_bytes);
  m.optimizer_bytes = element_bytes(map, "optimizer", m.optimizer_bytes);
  m.logit_bytes = element_bytes(map, "logit", m.logit_bytes);
  m.weight_gradients = weight_gradients(map);
  for (const auto& [key, fact] : {std::pair{"dropout", &m.dropout},
                                  {"fused_gate", &m.fused_gate},
                                  {"attention_by_head", &m.attention_by_head},
                                  {"attention_masks", &m.attention_masks},
                                  {"context_by_heads", &m.context_by_heads},
                                  {"late_reuse", &m.late_reuse},
                                  {"resident_weights", &m.resident_weights},
                                  {"first_rank_only", &m.first_rank_only}})
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

StackSpec stack_from_yaml(YamlMap& map) {
  StackSpec stack;
  stack.name = map.text("name");
  stack.frameworks = map.texts("frameworks");
  stack.balanced_stages = map.boolean("balanced_stages", false);
  stack.separate_reduce_group = map.boolean("separate_reduce_group", false);
  const std::string kernels = map.choice("attention", {"flash2", "cudnn", "unfused"}, "flash2");
  stack.attention = kernels == "cudnn"     ? AttentionKernels::cudnn
                    : kernels == "unfused" ? AttentionKernels::unfused
                                           : AttentionKernels::flash2;
  if (map.has("memory")) stack.memory = memory_from_yaml(map.map("memory"));
  if (map.has("step")) stack.step = step_from_yaml(map.map("step"));
  stack.source = map.text("source");
  map.finish();
  return stack;
}

StackSpec read_stack(const std::string& name_or_file) {
  YamlMap map = YamlMap::from_file(find_config("stacks", name_or_file));
  return stack_from_yaml(map);
}

std::vector<StackSpec> read_stacks() {
  std::vector<StackSpec> stacks;
  for (const auto& entry : std::filesystem::directory_iterator(configs_folder() / "stacks"))
    if (entry.path().extension() == ".yaml") stacks.push_back(read_stack(entry.path().string()));
  std::sort(stacks.begin(), stacks.end(), [](const StackSpec& a, const StackSpec& b) { return a.name < b.name; });
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
