#include "configs/files/search_space.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/precisions.hpp"

namespace wt {
namespace {

/// A list of words or a single one; empty: `auto`, or no such key.
std::vector<std::string> searched_words(YamlMap& map, const std::string& key, const std::string& needs) {
  if (!map.has(key)) return {};
  std::vector<std::string> out = map.node(key).IsScalar() ? std::vector<std::string>{map.text(key)} : map.texts(key);
  if (out.empty()) map.fail(key, "found an empty list, needs {} or auto", needs);
  return out == std::vector<std::string>{"auto"} ? std::vector<std::string>{} : out;
}

std::vector<std::int64_t> searched_numbers(YamlMap& map, const std::string& key, std::int64_t least = 1) {
  const std::string needs = fmt::format("whole numbers >= {}", least);
  if (!map.has(key)) return {};
  if (map.node(key).IsScalar()) {
    if (map.text(key) == "auto") return {};
    return {map.integer(key, least)};
  }
  std::vector<std::int64_t> values = map.integers(key);
  for (std::int64_t value : values)
    if (value < least) map.fail(key, "found {}, needs {} or auto", value, needs);
  if (values.empty()) map.fail(key, "found an empty list, needs {} or auto", needs);
  return values;
}

/// Values whose words are in their order, from 0.
template <typename T>
std::vector<T> named(YamlMap& map, const std::string& key, const std::vector<std::string>& allowed) {
  std::vector<T> out;
  const std::string needs = fmt::format("{}", fmt::join(allowed, ", "));
  for (const std::string& word : searched_words(map, key, needs)) {
    const auto value = enumerator_of<T>(word, allowed);
    if (!value) map.fail(key, "found '{}', allowed {} and auto", word, needs);
    out.push_back(*value);
  }
  return out;
}

std::vector<bool> either(YamlMap& map, const std::string& key, const std::string& yes = "true",
                         const std::string& no = "false") {
  return mapped(named<int>(map, key, {yes, no}), [](int which) { return which == 0; });
}

std::vector<Recompute> policies(YamlMap& map) {
  std::vector<Recompute> out;
  for (const std::string& word : searched_words(map, "recompute", "policies")) try {
      out.push_back(recompute_from_string(word));
    } catch (const Error& error) {
      map.fail("recompute", "{}, or none, or auto for the planner's own list", error.what());
    }
  return out;
}

/// Words of `precision` that plans have, each once, or auto alone.
std::vector<std::string> searched_precisions(YamlMap& map) {
  const char* key = "precision";
  if (!map.has(key)) return {};
  std::vector<std::string> words = map.node(key).IsScalar() ? std::vector<std::string>{map.text(key)} : map.texts(key);
  if (words == std::vector<std::string>{"auto"}) return words;
  const std::string needs = fmt::format("{}", fmt::join(planned_precisions(), ", "));
  if (words.empty()) map.fail(key, "found an empty list, needs {} or auto", needs);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::ranges::count(planned_precisions(), words[i]) == 0)
      map.fail(key, "found '{}', allowed {} and auto", words[i], needs);
    if (std::ranges::count(words, words[i]) > 1) map.fail(key, "found {} more than once", words[i]);
  }
  return words;
}

}  // namespace

SearchSpec search_from_yaml(YamlMap map) {
  constexpr double kLeastMemoryRisk = 1e-6;  // published runs do not describe the tail beyond
  SearchSpec s;
  s.shard_sizes = searched_numbers(map, "shard_sizes");
  s.expert_degrees = searched_numbers(map, "expert_degrees");
  s.expert_copies = searched_numbers(map, "expert_copies", 0);
  s.microbatches = searched_numbers(map, "microbatch");
  s.recompute = policies(map);
  s.tensor_degrees = searched_numbers(map, "tensor_parallel_degree");
  s.expert_tensor_degrees = searched_numbers(map, "expert_tensor_parallel_degree");
  s.pipeline_degrees = searched_numbers(map, "pipeline_parallel_degree");
  s.virtual_stages = searched_numbers(map, "virtual_pipeline_degree");
  s.context_degrees = searched_numbers(map, "context_parallel_degree");
  s.optimizer_shard_degrees = searched_numbers(map, "optimizer_shard_degree");
  s.schedules = named<Schedule>(map, "pipeline_schedule", schedule_names());
  s.dispatchers = named<Dispatcher>(map, "token_dispatcher", dispatcher_names());
  s.cuda_graphs = named<CudaGraphs>(map, "cuda_graphs", {"none", "partial", "full"});
  s.context_ring = either(map, "context_parallel_ring");
  s.sequence_parallel = either(map, "sequence_parallel");
  s.reshard_after_forward = either(map, "reshard_after_forward");
  s.reduce_every_microbatch = either(map, "gradient_reduction", "microbatch", "step");
  s.exchange_overlap = either(map, "overlap_expert_exchange");
  s.precisions = searched_precisions(map);
  s.simulations = map.integer_or("simulations", s.simulations, 1);
  s.tie = map.number_or("tie", s.tie, 0.0, 1.0);
  s.memory_risk = map.number_or("memory_risk", s.memory_risk, kLeastMemoryRisk, 0.5);
  map.finish();
  return s;
}

const std::vector<std::string>& search_axes() {
  static const std::vector<std::string> axes{"shard_sizes",
                                             "expert_degrees",
                                             "expert_copies",
                                             "microbatch",
                                             "recompute",
                                             "tensor_parallel_degree",
                                             "expert_tensor_parallel_degree",
                                             "pipeline_parallel_degree",
                                             "virtual_pipeline_degree",
                                             "context_parallel_degree",
                                             "optimizer_shard_degree",
                                             "pipeline_schedule",
                                             "token_dispatcher",
                                             "cuda_graphs",
                                             "context_parallel_ring",
                                             "sequence_parallel",
                                             "reshard_after_forward",
                                             "gradient_reduction",
                                             "overlap_expert_exchange"};
  return axes;
}

}  // namespace wt
