#include "sim/validate/judged.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "configs/base/statistics.hpp"

namespace wt {
namespace {

using Choices = std::map<std::string, std::vector<const Judged*>>;

/// Rows with a prediction by choice. Leaves out choices with fewer than two.
Choices choices_of(const std::vector<Judged>& rows, Forecast Judged::*which) {
  Choices choices;
  for (const Judged& row : rows)
    if (!row.choice.empty() && (row.*which).value) choices[row.choice].push_back(&row);
  std::erase_if(choices, [](const auto& choice) { return choice.second.size() < 2; });
  return choices;
}

double regret_among(const std::vector<const Judged*>& alternatives, Forecast Judged::*which) {
  const auto chosen =
      std::ranges::min_element(alternatives, {}, [&](const Judged* each) { return *(each->*which).value; });
  const auto best = std::ranges::min_element(alternatives, {}, &Judged::measured);
  return (*chosen)->measured / (*best)->measured - 1;
}

std::optional<double> spearman_among(const std::vector<const Judged*>& rows, Forecast Judged::*which) {
  std::vector<double> predicted, measured;
  for (const Judged* row : rows) predicted.push_back(*(row->*which).value), measured.push_back(row->measured);
  return spearman(predicted, measured);
}

constexpr std::int64_t kManyAlternatives = 10;  // with fewer alternatives, the rank correlation is mostly chance

/// See Accuracy::spearman.
std::optional<double> spearman_of(const std::vector<Judged>& rows, const std::vector<ChoiceAccuracy>& choices,
                                  Forecast Judged::*which) {
  std::vector<double> many, few;
  for (const ChoiceAccuracy& choice : choices)
    if (choice.spearman) (choice.n >= kManyAlternatives ? many : few).push_back(*choice.spearman);
  if (!many.empty()) return mean(many);
  if (!few.empty()) return mean(few);
  std::vector<const Judged*> all;
  for (const Judged& row : rows)
    if ((row.*which).value) all.push_back(&row);
  return spearman_among(all, which);
}

std::optional<double> regret_of(const std::vector<ChoiceAccuracy>& choices) {
  std::vector<double> regrets;
  regrets.reserve(choices.size());
  for (const ChoiceAccuracy& choice : choices) regrets.push_back(choice.regret);
  if (regrets.empty()) return std::nullopt;
  return mean(regrets);
}

}  // namespace

std::vector<ChoiceAccuracy> accuracy_of_choices(const std::vector<Judged>& rows, Forecast Judged::*which) {
  std::vector<ChoiceAccuracy> out;
  for (const auto& [name, alternatives] : choices_of(rows, which))
    out.push_back({name, static_cast<std::int64_t>(alternatives.size()), spearman_among(alternatives, which),
                   regret_among(alternatives, which)});
  return out;
}

Accuracy accuracy(const std::vector<Judged>& rows, Forecast Judged::*which) {
  Accuracy out;
  std::map<std::string, std::vector<double>> of_origin, inside_of_origin;
  std::vector<double> errors, sizes;
  std::set<std::string> groups;
  std::int64_t covered = 0;
  for (const Judged& row : rows) {
    const Forecast& forecast = row.*which;
    if (!forecast.value) {
      ++out.abstained;
      continue;
    }
    ++out.n;
    groups.insert(row.group);
    errors.push_back(*forecast.value / row.measured - 1);
    sizes.push_back(std::abs(errors.back()));
    const bool inside = row.measured >= forecast.low && row.measured <= forecast.high;
    covered += inside;
    of_origin[row.origin].push_back(sizes.back());
    inside_of_origin[row.origin].push_back(inside ? 1 : 0);
  }
  if (out.n == 0) return out;
  out.groups = static_cast<std::int64_t>(groups.size());
  out.mape = mean(sizes);
  out.median_ape = quantile(sizes, 0.5);
  out.p90_ape = quantile(sizes, 0.9);
  out.bias = quantile(errors, 0.5);
  const std::vector<ChoiceAccuracy> choices = accuracy_of_choices(rows, which);
  out.spearman = spearman_of(rows, choices, which);
  out.regret = regret_of(choices);
  out.coverage80 = static_cast<double>(covered) / static_cast<double>(out.n);
  out.origins = static_cast<std::int64_t>(of_origin.size());
  std::vector<double> medians, shares;
  for (const auto& [origin, all] : of_origin) medians.push_back(quantile(all, 0.5));
  for (const auto& [origin, all] : inside_of_origin) shares.push_back(mean(all));
  out.origin_median_ape = mean(medians);
  out.origin_coverage80 = mean(shares);
  return out;
}

void add_intervals(std::vector<Judged>& rows, Forecast Judged::*which) {
  LeftOutErrors errors;
  for (const Judged& row : rows)
    if (const auto& value = (row.*which).value) errors.add(row.regime, row.group, std::log(row.measured / *value));
  std::map<std::string, ErrorBounds> without;
  for (Judged& row : rows) {
    Forecast& forecast = row.*which;
    if (!forecast.value) continue;
    const auto [bounds, is_new] = without.try_emplace(row.group);
    if (is_new) bounds->second = errors.bounds(row.group);
    const auto [low, high] = bounds->second.of(row.regime);
    forecast.low = *forecast.value * low;
    forecast.high = *forecast.value * high;
  }
}

}  // namespace wt
