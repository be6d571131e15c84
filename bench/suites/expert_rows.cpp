#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "bench/suites/problems.hpp"
#include "configs/files/find.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {
namespace {

/// Splits `rows` by shares, rounded so that the parts sum to `rows`.
std::vector<std::int64_t> split(std::int64_t rows, const std::vector<double>& share) {
  const double sum = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<std::int64_t> out;
  double passed = 0;
  std::int64_t given = 0;
  for (double s : share) {
    passed += s;
    out.push_back(std::llround(static_cast<double>(rows) * passed / sum) - given);
    given += out.back();
  }
  return out;
}

/// The family in configs/routing of models with this number of experts and choices; "" = none.
std::string recorded_family(const ModelSpec& model) {
  if (model.experts == 16 && model.top_k == 4) return "dbrx-proxy";
  if (model.experts == 8 && model.top_k == 2) return "mixtral";
  if (model.experts == 64 && model.top_k == 8) return "olmoe";
  return "";
}

/// Recorded layers of a model with this number of experts and choices; empty: no such model was recorded.
const std::vector<std::vector<double>>& recorded_layers(const ModelSpec& model) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::vector<double>>> known;
  const auto [found, is_new] = known.try_emplace({model.experts, model.top_k});
  if (!is_new) return found->second;
  const std::string family = recorded_family(model);
  for (const std::string& preset : preset_names("routing"))
    if (!family.empty() && preset.starts_with(family + "-"))
      for (std::vector<double>& layer : read_histogram(configs_folder() / "routing" / (preset + ".csv"), model.experts))
        found->second.push_back(std::move(layer));
  return found->second;
}

}  // namespace

std::vector<std::int64_t> skewed_rows(std::int64_t rows, std::int64_t groups, std::uint64_t seed) {
  std::vector<double> share;
  for (std::int64_t g = 0; g < groups; ++g) share.push_back(1 / std::sqrt(static_cast<double>(g + 2)));
  std::mt19937_64 random(seed);
  std::shuffle(share.begin(), share.end(), random);
  return split(rows, share);
}

std::vector<std::int64_t> expert_rows(const ModelSpec& model, std::int64_t rows, std::int64_t groups,
                                      std::uint64_t seed) {
  if (groups < 1 || model.experts % groups != 0 || recorded_layers(model).empty())
    return skewed_rows(rows, groups, seed);
  const auto& layers = recorded_layers(model);
  const std::vector<double>& layer = layers[seed % layers.size()];
  const auto ranks = static_cast<std::uint64_t>(model.experts / groups);
  const auto begin = layer.begin() + static_cast<std::ptrdiff_t>(seed / layers.size() % ranks) * groups;
  const std::vector<double> share(begin, begin + groups);
  return std::accumulate(share.begin(), share.end(), 0.0) > 0 ? split(rows, share) : skewed_rows(rows, groups, seed);
}

}  // namespace wt
