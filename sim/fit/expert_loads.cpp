#include "sim/fit/expert_loads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "configs/files/layout.hpp"
#include "configs/files/study.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

constexpr std::int64_t kMostLayers = 64;  // more layers do not change the mean

double fullest_share(const RunRow& run, const std::string& routing_name) {
  const std::int64_t tokens = std::max<std::int64_t>(1, run.microbatch * run.seq / run.cp);
  const NamedRouting routing = read_routing({routing_name}, run.model, {1, tokens, tokens}, run.ep);
  Layout layout;
  layout.shard = layout.expert = run.ep;
  const double chosen = static_cast<double>(tokens * run.model.top_k);
  double sum = 0;
  const std::int64_t layers = std::min(run.model.layers, kMostLayers);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<double> rows = rows_received({routing.source->counts(0, 0, layer, 0)}, layout, layer);
    sum += *std::ranges::max_element(rows) * static_cast<double>(rows.size()) / chosen;
  }
  return sum / static_cast<double>(layers);
}

}  // namespace

ExpertLoads expert_loads(const RunRow& run) {
  if (run.model.experts == 0 || run.routing == RunRow::Routing::balanced) return {};
  if (run.model.experts % run.ep != 0) return {};  // layouts elsewhere refuse this case
  const std::string routing =
      run.capacity_factor > 1 ? fmt::format("capacity-{}", run.capacity_factor) : routing_for_model(run.model).front();
  const Balancing balancing = balancing_of(run.model.router);
  return {routing, fullest_share(run, routing),
          balancing == Balancing::none
              ? "routing as other models train that nothing balances"
              : fmt::format("routing as other models train, balanced by {}", to_string(balancing))};
}

}  // namespace wt
