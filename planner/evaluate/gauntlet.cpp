#include "planner/evaluate/gauntlet.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "configs/base/error.hpp"

namespace wt {
namespace {

std::string shown(const GauntletBenchmark& b) { return fmt::format("{}, {}-shot", b.name, b.shots); }

/// The scores of a benchmark: the metric that it names. For Foundry's results: every accuracy, of all subsets.
std::vector<const TaskScore*> scores_of(const GauntletBenchmark& b, const Evaluation& evaluation) {
  std::vector<const TaskScore*> of_task, out;
  for (const TaskScore& score : evaluation.scores)
    if (score.task == b.name && score.shots == b.shots) of_task.push_back(&score);
  if (evaluation.harness == Evaluation::Harness::composer) {
    for (const TaskScore* score : of_task)
      if (b.metric.empty() ? score->metric.find("Accuracy") != std::string::npos : score->metric == b.metric)
        out.push_back(score);
    return out;
  }
  std::set<std::string> metrics;
  for (const TaskScore* score : of_task) {
    metrics.insert(score->metric_and_filter());
    if (score->metric_and_filter() == b.metric || score->metric == b.metric) out.push_back(score);
  }
  if (of_task.empty()) return out;
  if (b.metric.empty() || out.empty())
    throw_usage(
        "benchmark {}: found {}, lm-eval scored {}; say in the gauntlet which of them it is, as metric: {}. None of "
        "them is LLM Foundry's accuracy",
        shown(b), b.metric.empty() ? "no metric" : "metric " + b.metric, fmt::join(metrics, ", "), *metrics.begin());
  if (out.size() > 1)
    throw_usage("benchmark {}: metric {} is scored with several filters; name one of {}", shown(b), b.metric,
                fmt::join(metrics, ", "));
  return out;
}

double weight_of(const GauntletBenchmark& b, GauntletSpec::Weighting weighting,
                 const std::vector<const TaskScore*>& scores) {
  if (weighting == GauntletSpec::Weighting::equal) return 1;
  double samples = 0;
  std::set<std::string> counted_subsets;  // metrics of one subset are of the same samples
  for (const TaskScore* score : scores) {
    if (!counted_subsets.insert(score->subset).second) continue;
    if (!b.samples && !score->samples)
      throw_usage(
          "benchmark {}: its weight is its number of samples, which the results do not say; give it as samples: N, or "
          "choose weighting: EQUAL",
          shown(b));
    samples += static_cast<double>(score->samples.value_or(0));
  }
  if (b.samples) samples = static_cast<double>(*b.samples);
  samples = std::max(samples, 1.0);
  return weighting == GauntletSpec::Weighting::sample_size ? samples : std::max(std::log2(samples), 1.0);
}

CategoryScore category_score(const GauntletSpec& gauntlet, const GauntletSpec::Category& category,
                             const Evaluation& evaluation) {
  CategoryScore out{.name = category.name, .score = {}, .benchmarks = {}, .missing = {}};
  double weights = 0, sum = 0;
  for (const GauntletBenchmark& b : category.benchmarks) {
    const std::vector<const TaskScore*> scores = scores_of(b, evaluation);
    if (scores.empty()) {
      out.missing.push_back(shown(b));
      continue;
    }
    double value = 0;
    for (const TaskScore* score : scores) value += score->value / static_cast<double>(scores.size());
    double score = value;
    if (gauntlet.subtract_baseline) score -= b.baseline;
    if (gauntlet.subtract_baseline && gauntlet.rescale) score /= 1 - b.baseline;
    const std::string metric = b.metric.empty() ? scores.front()->metric : b.metric;
    const double weight = weight_of(b, gauntlet.weighting, scores);
    out.benchmarks.push_back({b.name, metric, b.shots, b.baseline, value, score, weight});
    weights += weight, sum += weight * score;
  }
  if (out.missing.empty()) out.score = sum / weights;
  return out;
}

}  // namespace

GauntletScores gauntlet_scores(const GauntletSpec& gauntlet, const Evaluation& evaluation) {
  using Weighting = GauntletSpec::Weighting;
  GauntletScores out{.weighting = gauntlet.weighting == Weighting::equal         ? "EQUAL"
                                  : gauntlet.weighting == Weighting::sample_size ? "SAMPLE_SZ"
                                                                                 : "LOG_SAMPLE_SZ",
                     .categories = {},
                     .averages = {}};
  for (const GauntletSpec::Category& category : gauntlet.categories)
    out.categories.push_back(category_score(gauntlet, category, evaluation));
  for (const GauntletSpec::Average& average : gauntlet.averages) {
    NamedAverage& to = out.averages.emplace_back();
    to.name = average.name;
    double sum = 0;
    for (const CategoryScore& category : out.categories) {
      if (std::ranges::find(average.categories, category.name) == average.categories.end()) continue;
      (category.score ? to.categories : to.missing).push_back(category.name);
      sum += category.score.value_or(0);
    }
    if (!to.categories.empty()) to.score = sum / static_cast<double>(to.categories.size());
  }
  return out;
}

}  // namespace wt
