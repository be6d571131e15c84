#include "sim/program/routing/named_routing.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "configs/spec/find.hpp"
#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

constexpr std::string_view kStretched = "stretched-";

/// A trainer's routing.csv has one column an expert; a histogram has the columns layer, expert, count.
bool is_recording(const std::string& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line.front() != '#') return line.starts_with("step,microbatch,layer,rank");
  return false;
}

}  // namespace

std::vector<LoadScenario> read_scenarios(const std::vector<std::string>& names, const ModelSpec& model) {
  std::vector<LoadScenario> out;
  for (std::string name : names) {
    if (name == "balanced") {
      if (names.size() > 1)
        throw_error(Code::usage, "routing: found balanced beside other loads; give balanced alone or none of it");
      return {};
    }
    const bool stretch = name.starts_with(kStretched);
    if (stretch) name.erase(0, kStretched.size());
    if (stretch && (name.empty() || model.experts == 0))
      throw_error(Code::usage,
                  "routing: found '{}{}' for a model of {} experts, allowed is 'stretched-' and a histogram for a "
                  "model that has experts",
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
                                            const std::vector<LoadScenario>& scenarios) {
  if (scenarios.empty()) return balanced_routing(model, tokens);
  std::size_t rows = 0;
  for (const LoadScenario& scenario : scenarios) rows = std::max(rows, scenario.counts.size());
  std::vector<std::vector<double>> mean(rows, std::vector<double>(static_cast<std::size_t>(model.experts), 0.0));
  for (std::size_t layer = 0; layer < rows; ++layer)
    for (const LoadScenario& scenario : scenarios) {
      const std::vector<double> shares = shares_of(scenario, static_cast<std::int64_t>(layer));
      for (std::size_t e = 0; e < mean[layer].size(); ++e) mean[layer][e] += shares.at(e);
    }
  std::string description = fmt::format("mean of {} histograms", scenarios.size());
  if (scenarios.size() == 1)
    description =
        "histogram " + scenarios[0].name + (scenarios[0].evidence.kind == Evidence::assumed ? " (assumed)" : "");
  return histogram_routing(model, tokens, mean, std::move(description));
}

NamedRouting read_routing(const std::vector<std::string>& names, const ModelSpec& model, const Microbatches& tokens) {
  if (names.size() == 1 && is_recording(names[0]))
    return {recorded_routing(names[0], model, tokens), Evidence::measured};
  const std::vector<LoadScenario> scenarios = read_scenarios(names, model);
  NamedRouting out{mean_routing(model, tokens, scenarios), Evidence::assumed};
  if (!scenarios.empty()) out.evidence = scenarios.front().evidence.kind;
  for (const LoadScenario& one : scenarios)
    if (one.evidence.kind == Evidence::assumed) out.evidence = Evidence::assumed;
  return out;
}

}  // namespace wt
