// The finish date of a planned run, its losses to failures, and the inputs that these depend on.
#include <fmt/format.h>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/plan/plan_sections.hpp"
#include "reports/render/charts.hpp"

namespace wt {

const char* bucket_words(Bucket bucket) {
  static const char* const words[] = {"training",
                                      "starting processes",
                                      "first steps after a start",
                                      "saving checkpoints",
                                      "loading checkpoints",
                                      "steps lost to failures",
                                      "detecting and replacing nodes",
                                      "planned stops and verification",
                                      "slow nodes and lost replicas"};
  static_assert(std::size(words) == kBuckets);
  return words[static_cast<std::size_t>(bucket)];
}

Section goodput_section(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details) {
  const CadencePlan& c = plan.schedule.cadence;
  const RunDistribution& d = plan.runs.distribution;
  Section s{.id = "goodput", .title = "Finish date and goodput"};
  s.paragraphs.push_back(
      fmt::format("{} simulated runs of {} steps with the failures of {}, at the predicted step: half are done after "
                  "{:.1f} days, 90 % after {:.1f}, 95 % after {:.1f}. A run has {:.0f} failures. Goodput is {:.1f} %.",
                  format_number(as_double(d.runs)), format_number(as_double(plan.schedule.steps)), inputs.failures.name,
                  d.p50_s / kDay_s, d.p90_s / kDay_s, d.p95_s / kDay_s, d.failures, 100 * d.goodput));
  for (const std::string& sentence : plan_disturbances(inputs, plan)) s.paragraphs.push_back(sentence);
  if (c.persist_bound)
    s.paragraphs.push_back(
        "The interval is as long as a save takes to reach storage: faster storage would allow a shorter one.");
  KeyValues saves{.title = "A save and a restore"};
  for (const auto& [name, n] : {std::pair{"blocks training", &plan.schedule.input.blocking_s},
                                {"reaches storage", &plan.schedule.input.persist_s},
                                {"reload", &plan.schedule.input.recovery.reload_s},
                                {"time between failures", &plan.schedule.input.mtbf_s}})
    saves.entries.emplace_back(name,
                               Cell(n->value, format_seconds(n->value) + ": " + n->evidence.source, n->evidence.kind));
  s.items.push_back(saves);
  Table cadence{.title = "Other intervals",
                .columns = {"case", numeric("save every", "min"), numeric("goodput", "%")},
                .note = "Closed form. The optimum is flat: a longer interval spares storage for little goodput."};
  for (const IntervalRow& row : details.intervals)
    cadence.rows.push_back({row.name, Cell(row.interval_s / 60), Cell(100 * row.goodput)});
  s.items.push_back(cadence);
  std::vector<std::pair<std::string, double>> losses;
  for (std::size_t b = 1; b < kBuckets; ++b)
    if (d.bucket_mean_s[b] > 0)
      losses.emplace_back(bucket_words(static_cast<Bucket>(b)), -100 * d.bucket_mean_s[b] / d.mean_s);
  Chart lost = waterfall("From wall time to goodput", "%", {"wall time", 100}, losses, "goodput");
  lost.value_axis = "share of the wall time";
  s.items.push_back(std::move(lost));
  Table table{.title = "With other clusters' failure rates",
              .columns = {"preset", numeric("time between failures", "h"), numeric("save every", "min"),
                          numeric("goodput", "%"), numeric("expected", "days")},
              .note = "Expected days by the closed form, from rates alone; the interval is chosen anew for each."};
  for (const PresetRow& row : plan.presets)
    table.rows.push_back({Cell(row.title), Cell(row.mtbf_s / 3600, Evidence::published), Cell(row.interval_s / 60),
                          Cell(100 * row.goodput), Cell(row.days)});
  s.items.push_back(table);
  return s;
}

Section sensitivity_section(const PlanDetails& details) {
  Section s{.id = "sensitivity", .title = "What it depends on"};
  s.paragraphs.push_back(
      "One input at a time: this layout simulated again with the cadence chosen anew, and beside it the layout that "
      "would then be best. A cluster that is not InfiniBand may lie outside these ranges: a real EFA fleet reached 28 "
      "and 11 GB/s bus bandwidth in 256 MB all-gathers over 32 and 64 nodes (HF Ultrascale Playbook).");
  const Sensitivities& all = details.sensitivities;
  const std::string what = all.unit == "days" ? "days" : "energy";
  std::vector<Sensitivity> bars;
  Table table{.title = "Would another layout be better?",
              .columns = {"input", numeric("at its low end", all.unit), "better then",
                          numeric("at its high end", all.unit), "better then"},
              .note = fmt::format("{} of this layout, by the closed form. Better: the layout with the least of it "
                                  "there, where it has less by more than a tie.",
                                  all.unit == "days" ? "Days" : "Energy")};
  const auto better = [&](const SensitivityEnd& end) {
    return end.best.empty() ? Cell("none", Status::good)
                            : Cell(fmt::format("{}; this one takes {:.1f} % more {}", end.best, 100 * end.regret, what),
                                   Status::warn);
  };
  bool searched = true;
  for (const SensitivityRow& row : all.rows) {
    bars.push_back({row.input, row.low.value, row.high.value});
    table.rows.push_back({row.input, Cell(row.low.value), better(row.low), Cell(row.high.value), better(row.high)});
    searched = searched && row.low.searched && row.high.searched;
  }
  if (!searched)
    table.note +=
        fmt::format(" Not every end was searched again: there the {} best layouts of the plan's search are compared.",
                    Sensitivities::kComparedLayouts);
  s.items.push_back(tornado("Expected " + what, all.unit, {all.value, "plan"}, std::move(bars)));
  s.items.push_back(table);
  return s;
}

}  // namespace wt
