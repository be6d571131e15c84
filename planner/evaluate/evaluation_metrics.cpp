#include "planner/evaluate/evaluation_metrics.hpp"

#include <fmt/format.h>

namespace wt {

std::vector<std::pair<std::string, double>> evaluation_metrics(const Evaluation& evaluation) {
  const bool composer = evaluation.harness == Evaluation::Harness::composer;
  std::vector<std::pair<std::string, double>> out;
  for (const TaskScore& score : evaluation.scores) {
    std::string name = (composer ? "metrics/" : "lm_eval/") + score.task;
    if (score.shots) name += fmt::format("/{}-shot", *score.shots);
    if (!score.subset.empty()) name += "/" + score.subset;
    name += "/" + score.metric_and_filter();
    out.emplace_back(name, score.value);
    if (score.standard_error) out.emplace_back(name + "_stderr", *score.standard_error);
  }
  if (!evaluation.gauntlet) return out;
  const auto add = [&](const std::string& name, const std::optional<double>& score) {
    if (score) out.emplace_back((composer ? "icl/metrics/eval_gauntlet/" : "lm_eval/eval_gauntlet/") + name, *score);
  };
  for (const CategoryScore& category : evaluation.gauntlet->categories) add(category.name, category.score);
  for (const NamedAverage& average : evaluation.gauntlet->averages) add(average.name, average.score);
  return out;
}

}  // namespace wt
