#include "planner/cli/eval/evaluation_report.hpp"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/text.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt {
namespace {

Cell measured_score(double value) { return {value, fmt::format("{:.4f}", value), Evidence::measured}; }
template <typename T>
Cell whole_or_none(const std::optional<T>& n) {
  return n ? whole(*n) : Cell("");
}

std::string harness_and_version(const Evaluation& evaluation) {
  return to_string(evaluation.harness) + (evaluation.version.empty() ? "" : " " + evaluation.version);
}

Table tasks_table(const Evaluation& evaluation) {
  Table table{
      .title = "Tasks",
      .columns = {"task", numeric("shots"), "metric", numeric("value"), numeric("standard error"), numeric("samples")}};
  for (const TaskScore& s : evaluation.scores)
    table.rows.push_back({s.name(), whole_or_none(s.shots), s.metric_and_filter(), measured_score(s.value),
                          s.standard_error ? measured_score(*s.standard_error) : Cell(""), whole_or_none(s.samples)});
  return table;
}

Table benchmarks_table(const GauntletScores& gauntlet) {
  Table table{.title = "Benchmarks",
              .columns = {"category", "benchmark", "metric", numeric("value"), numeric("of random answers"),
                          numeric("score"), numeric("weight")}};
  for (const CategoryScore& category : gauntlet.categories)
    for (const BenchmarkScore& b : category.benchmarks)
      table.rows.push_back({category.name,
                            fmt::format("{}, {}-shot", b.name, b.shots),
                            b.metric,
                            measured_score(b.value),
                            {b.baseline, fmt::format("{:.4g}", b.baseline)},
                            {b.score, fmt::format("{:.4f}", b.score), Evidence::derived},
                            {b.weight, fmt::format("{:.4g}", b.weight)}});
  return table;
}

Table averages_table(const GauntletScores& gauntlet) {
  Table table{.title = "Averages", .columns = {"name", numeric("score"), "over", "missing"}};
  const auto add = [&](const std::string& name, const std::optional<double>& score, const std::string& over,
                       const std::vector<std::string>& missing) {
    table.rows.push_back({name, score ? Cell{*score, fmt::format("{:.4f}", *score), Evidence::derived} : Cell("n/a"),
                          over, fmt::format("{}", fmt::join(missing, "; "))});
  };
  for (const CategoryScore& c : gauntlet.categories)
    add(c.name, c.score, counted(c.benchmarks.size() + c.missing.size(), "benchmark"), c.missing);
  for (const NamedAverage& a : gauntlet.averages)
    add(a.name, a.score, counted(a.categories.size(), "score"), a.missing);
  return table;
}

std::size_t tasks_of(const Evaluation& evaluation) {
  std::set<std::string> tasks;
  for (const TaskScore& s : evaluation.scores) tasks.insert(s.task);
  return tasks.size();
}

}  // namespace

Section evaluation_section(const Evaluation& evaluation) {
  Section section{.id = "evaluation",
                  .title = "Evaluation",
                  .paragraphs = {"Scored by " + harness_and_version(evaluation) + "."},
                  .items = {tasks_table(evaluation)}};
  if (!evaluation.gauntlet) return section;
  section.paragraphs.push_back(
      evaluation.harness == Evaluation::Harness::lm_eval
          ? "The averages are worked out as LLM Foundry's Gauntlet does, from lm-eval's metrics. These score answers "
            "otherwise than LLM Foundry, so that the averages are not comparable to a published Gauntlet."
          : "The averages are LLM Foundry's Gauntlet: scores less what random answers get, weighted " +
                evaluation.gauntlet->weighting + " in their category.");
  section.items.emplace_back(benchmarks_table(*evaluation.gauntlet));
  section.items.emplace_back(averages_table(*evaluation.gauntlet));
  return section;
}

Report evaluation_report(const Evaluation& evaluation) {
  Report report{.title = evaluation.model.empty() ? "Evaluation" : "Evaluation of " + evaluation.model};
  report.answer =
      fmt::format("{} scored {} by {}.", counted(tasks_of(evaluation), "task"),
                  evaluation.scores.size() == 1 ? "once" : fmt::format("with {} values", evaluation.scores.size()),
                  harness_and_version(evaluation));
  report.sections.push_back(evaluation_section(evaluation));
  report.payload = evaluation_json(evaluation);
  return report;
}

}  // namespace wt
