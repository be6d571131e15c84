#include "sim/cost/stacks/expert_loads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "configs/spec/layout.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

bool has(const std::string& text, const char* words) {
  return std::regex_search(text, std::regex(words, std::regex::icase));
}

constexpr std::int64_t kMostLayers = 64;  // recorded layers are fewer, and repeat

/// Recorded models have their own; the proxy stands for DBRX (configs/routing/README.md).
std::string histogram_of(const ModelSpec& model) {
  if (model.experts == 8 && has(model.name, "mixtral")) return "mixtral";
  if (model.experts == 64 && has(model.name, "olmoe")) return "olmoe";
  if (model.experts == 16 && has(model.name, "dbrx")) return "dbrx-proxy";
  return "stretched-olmoe";
}

double fullest_share(const RunRow& run, const std::string& histogram) {
  constexpr std::int64_t kTokens = 1 << 20;  // any number: shares count
  const NamedRouting routing = read_routing({histogram}, run.model, {1, kTokens, kTokens});
  Layout layout;
  layout.shard = layout.expert = run.ep;
  double sum = 0;
  const std::int64_t layers = std::min(run.model.layers, kMostLayers);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<double> rows = rows_received({routing.source->counts(0, 0, layer, 0)}, layout, layer);
    const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
    sum += *std::max_element(rows.begin(), rows.end()) * static_cast<double>(rows.size()) / all;
  }
  return sum / static_cast<double>(layers);
}

}  // namespace

ExpertLoads expert_loads(const RunRow& run) {
  if (run.model.experts == 0 || run.routing == RunRow::Routing::balanced) return {};
  if (run.routing == RunRow::Routing::unsaid) {
    // moe_pad_expert_input_to_capacity with a moe_expert_capacity_factor of 1: NVIDIA/dgxc-benchmarking
    // grok1/grok1_314b.yaml; MegatronTokenDropCallback of NVIDIA/NeMo's performance recipes (mixtral_8x7b.py).
    if (trained_by_nemo(run.framework)) return {"", 1, "experts filled to a capacity of 1, as NeMo's recipes do"};
    // moe_router_force_load_balancing: Megatron-Bridge docs/performance-summary.md, footnote.
    if (has(run.framework, "Megatron-Bridge")) return {"", 1, "balance forced, as Megatron-Bridge's recipes do"};
  }
  if (run.model.experts % run.ep != 0) return {};  // a layout refused elsewhere
  const std::string histogram = histogram_of(run.model);
  return {histogram, fullest_share(run, histogram), fmt::format("routing as in the histograms {}", histogram)};
}

}  // namespace wt
