#include "sim/cost/stacks/expert_loads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "configs/spec/layout.hpp"
#include "configs/spec/support/text.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

constexpr std::int64_t kMostLayers = 64;  // recorded layers are fewer, and repeat

/// Recorded models have their own; the proxy stands for DBRX (configs/routing/README.md).
std::string histogram_of(const ModelSpec& model) {
  const auto named = [&](const char* word) { return lower(model.name).find(word) != std::string::npos; };
  if (model.experts == 8 && named("mixtral")) return "mixtral";
  if (model.experts == 64 && named("olmoe")) return "olmoe";
  if (model.experts == 16 && named("dbrx")) return "dbrx-proxy";
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
  if (run.model.experts % run.ep != 0) return {};  // a layout refused elsewhere
  const std::string histogram = histogram_of(run.model);
  return {histogram, fullest_share(run, histogram), fmt::format("routing as in the histograms {}", histogram)};
}

}  // namespace wt
