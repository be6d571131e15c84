#include "sim/program/routing/named_routing.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <optional>

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

constexpr std::string_view kStretched = "stretched-", kTrained = "trained-", kCapacity = "capacity-";
constexpr double kMostCapacity = 1000;

std::optional<Balancing> balancing_named(const std::string& word) {
  for (const Balancing one : {Balancing::loss, Balancing::bias, Balancing::none})
    if (word == to_string(one)) return one;
  return {};
}

/// Handles "trained", "trained-METHOD" and "capacity-X". Returns nothing for other names.
std::optional<LoadScenario> read_trained(const std::string& name, const ModelSpec& model) {
  const bool usual = name == "trained", method = name.starts_with(kTrained), cut = name.starts_with(kCapacity);
  if (!usual && !method && !cut) return {};
  if (model.experts == 0) throw_usage("routing: found '{}' for a model without experts; allowed is balanced", name);
  Balancing balancing = balancing_of(model.router);
  if (method) {
    const auto said = balancing_named(name.substr(kTrained.size()));
    if (!said) throw_usage("routing: found '{}', allowed are trained, trained-loss, trained-bias, trained-none", name);
    balancing = *said;
  }
  TrainedLoads loads = trained_loads(balancing);
  if (cut) {
    const char *const begin = name.data() + kCapacity.size(), *const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, loads.capacity);
    if (error != std::errc() || stop != end || !(loads.capacity >= 1 && loads.capacity <= kMostCapacity))
      throw_usage("routing: found '{}', needs capacity-X with X from 1 to {:g}, such as capacity-1.25", name,
                  kMostCapacity);
  }
  return trained_scenario(name, loads, balancing, model);
}

std::string described(const LoadScenario& trained, const std::vector<double>& kept) {
  const double dropped = 1 - std::accumulate(kept.begin(), kept.end(), 0.0) / static_cast<double>(kept.size());
  return fmt::format("{}: {}{} (assumed)", trained.name,
                     trained.evidence.source.substr(0, trained.evidence.source.find(" (")),
                     trained.trained->capacity > 0 ? fmt::format(", {:.1f} % of the rows dropped", 100 * dropped) : "");
}

}  // namespace

bool is_recording(const std::string& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line.front() != '#') return line.starts_with("step,microbatch,layer,rank");
  return false;
}

std::vector<LoadScenario> read_scenarios(const std::vector<std::string>& names, const ModelSpec& model) {
  std::vector<LoadScenario> out;
  for (std::string name : names) {
    if (name == "balanced") {
      if (names.size() > 1)
        throw_usage("routing: found balanced beside other loads; give balanced alone or none of it");
      return {};
    }
    if (std::optional<LoadScenario> trained = read_trained(name, model)) {
      out.push_back(std::move(*trained));
      continue;
    }
    const bool stretch = name.starts_with(kStretched);
    if (stretch) name.erase(0, kStretched.size());
    if (stretch && (name.empty() || model.experts == 0))
      throw_usage(
          "routing: found '{}{}' for a model of {} experts, allowed is 'stretched-' and a histogram for a model that "
          "has experts",
          kStretched, name, model.experts);
    std::vector<std::string> family;
    for (const std::string& preset : preset_names("routing"))
      if (preset.starts_with(name + "-")) family.push_back(preset);
    if (family.empty()) family = {name};
    for (const std::string& one : family)
      out.push_back(stretch ? stretched(read_load_scenario(one, 0), model) : read_load_scenario(one, model.experts));
  }
  return out;
}

std::unique_ptr<RoutingSource> mean_routing(const ModelSpec& model, const Microbatches& tokens,
                                            std::int64_t expert_ranks, const std::vector<LoadScenario>& scenarios) {
  if (scenarios.empty()) return balanced_routing(model, tokens);
  std::vector<std::vector<std::vector<double>>> shares;  // [scenario][row][expert]
  std::size_t rows = 0;
  for (const LoadScenario& scenario : scenarios) {
    shares.push_back(shares_at(scenario, model, tokens.each, expert_ranks));
    rows = std::max(rows, shares.back().size());
  }
  std::vector<std::vector<double>> mean(rows, std::vector<double>(static_cast<std::size_t>(model.experts), 0.0));
  std::vector<double> kept;
  for (std::size_t layer = 0; layer < rows; ++layer) {
    for (const auto& scenario : shares)
      for (std::size_t e = 0; e < mean[layer].size(); ++e)
        mean[layer][e] += scenario[layer % scenario.size()].at(e) / static_cast<double>(scenarios.size());
    kept.push_back(std::accumulate(mean[layer].begin(), mean[layer].end(), 0.0));
  }
  std::string description = fmt::format("mean of {} histograms", scenarios.size());
  if (scenarios.size() == 1)
    description = scenarios[0].trained ? described(scenarios[0], kept)
                                       : "histogram " + scenarios[0].name +
                                             (scenarios[0].evidence.kind == Evidence::assumed ? " (assumed)" : "");
  return histogram_routing(model, tokens, mean, std::move(description), kept);
}

NamedRouting read_routing(const std::vector<std::string>& names, const ModelSpec& model, const Microbatches& tokens,
                          std::int64_t expert_ranks) {
  if (names.size() == 1 && is_recording(names[0]))
    return {recorded_routing(names[0], model, tokens), Evidence::measured};
  const std::vector<LoadScenario> scenarios = read_scenarios(names, model);
  NamedRouting out{mean_routing(model, tokens, expert_ranks, scenarios), Evidence::assumed};
  if (!scenarios.empty()) out.evidence = scenarios.front().evidence.kind;
  for (const LoadScenario& one : scenarios)
    if (one.evidence.kind == Evidence::assumed) out.evidence = Evidence::assumed;
  return out;
}

}  // namespace wt
