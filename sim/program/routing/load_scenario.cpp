#include "sim/program/routing/load_scenario.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "sim/program/routing/shares.hpp"

namespace wt {
namespace {

Provenance evidence_in(const std::filesystem::path& file) {
  static const std::string kMark = "Evidence: ";
  std::ifstream in(file);
  for (std::string line; std::getline(in, line) && line.starts_with('#');) {
    const std::size_t at = line.find(kMark);
    if (at == std::string::npos) continue;
    const std::string word =
        line.substr(at + kMark.size(),
                    line.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at + kMark.size()) - (at + kMark.size()));
    return {evidence_from_string(word), file.filename().string() + ": " + line.substr(2)};
  }
  return {Evidence::assumed, file.filename().string() + " does not say where its counts come from"};
}

}  // namespace

LoadScenario read_load_scenario(const std::string& name_or_file, std::int64_t experts) {
  const std::filesystem::path file = find_config("routing", name_or_file);
  return {file.stem().string(), read_histogram(file, experts), evidence_in(file)};
}

LoadScenario stretched(const LoadScenario& recorded, const ModelSpec& model) {
  const auto experts = static_cast<std::size_t>(model.experts);
  const double most = 1.0 / static_cast<double>(model.top_k);
  std::size_t stride =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(0.618 * static_cast<double>(experts))));
  while (std::gcd(stride, experts) != 1) ++stride;
  LoadScenario out{"stretched-" + recorded.name,
                   {},
                   {Evidence::assumed, fmt::format("loads of {}, stretched over {} experts: another model's",
                                                   recorded.name, model.experts)}};
  for (std::size_t layer = 0; layer < recorded.counts.size(); ++layer) {
    std::vector<double> sorted = shares_of(recorded, static_cast<std::int64_t>(layer));
    std::ranges::sort(sorted);
    std::vector<double> loads(experts);
    for (std::size_t e = 0; e < experts; ++e) {
      const double place =
          (static_cast<double>(e) + 0.5) / static_cast<double>(experts) * static_cast<double>(sorted.size()) - 0.5;
      const double inside = std::clamp(place, 0.0, static_cast<double>(sorted.size() - 1));
      const std::size_t below = static_cast<std::size_t>(inside), above = std::min(below + 1, sorted.size() - 1);
      loads[e] = std::lerp(sorted[below], sorted[above], inside - static_cast<double>(below));
    }
    loads = capped_shares(std::move(loads), most);
    std::vector<double>& dealt = out.counts.emplace_back(experts);
    for (std::size_t e = 0; e < experts; ++e) dealt[(e * stride + layer) % experts] = loads[e];
  }
  return out;
}

LoadScenario trained_scenario(const std::string& name, const TrainedLoads& loads, Balancing balancing,
                              const ModelSpec& model) {
  constexpr double kEndless = 1e18;
  return {name,
          trained_shares(loads, model, kEndless),
          {Evidence::assumed,
           fmt::format("loads of other models in training, {} (configs/routing/README.md)",
                       balancing == Balancing::none ? "not balanced" : "balanced by " + to_string(balancing))},
          loads};
}

std::vector<std::vector<double>> shares_at(const LoadScenario& scenario, const ModelSpec& model, std::int64_t tokens,
                                           std::int64_t expert_ranks) {
  if (scenario.trained) {
    // Rows are dropped per source rank, so only the unevenness of one source rank's tokens matters.
    const std::int64_t sources = scenario.trained->capacity > 0 ? 1 : expert_ranks;
    return trained_shares(*scenario.trained, model, static_cast<double>(tokens * sources));
  }
  std::vector<std::vector<double>> shares;
  for (std::size_t layer = 0; layer < scenario.counts.size(); ++layer)
    shares.push_back(shares_of(scenario, static_cast<std::int64_t>(layer)));
  return shares;
}

std::vector<double> shares_of(const LoadScenario& scenario, std::int64_t layer) {
  std::vector<double> shares = scenario.counts[static_cast<std::size_t>(layer) % scenario.counts.size()];
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

LoadScenario load_scenario(const RoutingSource& routing, const std::string& name, std::int64_t layers,
                           std::int64_t source_ranks, const std::vector<std::int64_t>& steps, Provenance evidence) {
  if (layers < 1 || source_ranks < 1 || steps.empty())
    throw_usage("loads of {}: found {} layers, {} ranks, {} steps; needs at least one of each", name, layers,
                source_ranks, steps.size());
  LoadScenario out{name, {}, std::move(evidence)};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<double> sum;
    for (const std::int64_t step : steps)
      for (std::int64_t rank = 0; rank < source_ranks; ++rank) {
        const std::vector<double> counts = routing.counts(step, 0, layer, rank);
        sum.resize(counts.size(), 0.0);
        for (std::size_t e = 0; e < counts.size(); ++e) sum[e] += counts[e];
      }
    out.counts.push_back(std::move(sum));
  }
  return out;
}

}  // namespace wt
