// The first page of a plan's report, for the person who signs: what it takes, what it risks, and how sure that is.
#include <fmt/format.h>

#include <algorithm>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/relatives.hpp"
#include "planner/cli/parts/throughput.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/plan/plan_sections.hpp"
#include "sim/cost/published_constants.hpp"

namespace wt {
namespace {

constexpr std::size_t kDrivers = 3, kPoints = 100;
/// Largest ratio of the step to an end of its 80 % interval for a confidence of "high" and of "medium".
constexpr double kSure = 1.15, kHalfSure = 1.4;

std::vector<double> days_of(const PlanInputs& inputs, const Plan& plan) {
  std::vector<double> out;
  for (const CostDraw& draw : plan.cost.draws)
    out.push_back(draw.gpu_hours * 3600 / as_double(inputs.study.gpus) / kDay_s);
  std::ranges::sort(out);
  return out;
}

/// The share of the simulated runs that are done by a day.
Chart finish_chart(const PlanInputs& inputs, const Plan& plan) {
  const std::vector<double> days = days_of(inputs, plan);
  Chart chart{.kind = ChartKind::line,
              .title = "When the run is done",
              .unit = "%",
              .series = {{.name = "share of the simulated runs that are done"}},
              .label_axis = "days from the start",
              .value_axis = "runs done",
              .marks = {{plan.cost.days.p50, "half of the runs"}, {plan.cost.days.p95, "95 % of the runs"}},
              .marks_name = "P50 and P95",
              .note = "Each run has its own failures, and a step time drawn from its interval."};
  const std::size_t points = std::min(kPoints, days.size());
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t at = points < 2 ? 0 : i * (days.size() - 1) / (points - 1);
    chart.x.push_back(days[at]);
    chart.series[0].values.push_back(100 * as_double(static_cast<std::int64_t>(at + 1)) / as_double(std::ssize(days)));
  }
  return chart;
}

/// "grouped_gemm" as "grouped gemm".
std::string spaced(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

struct Driver {
  std::string what;
  double width = 0;  ///< days, or energy where that is preferred, between its low and its high end
};

/// What moves the finish most: classes of times at the ends of their intervals, expert loads, failures. For a plan of
/// one layout, whose times were not varied, the inputs of the sensitivities.
std::vector<Driver> drivers_of(const Plan& plan, const PlanDetails& details) {
  std::vector<Driver> out;
  for (const Worth& w : plan.next.rows)
    if (!w.joint) out.push_back({spaced(w.what) + ", at the ends of its 80 % interval", w.width});
  if (out.empty())
    for (const SensitivityRow& row : details.sensitivities.rows)
      out.push_back({row.input, std::abs(row.high.value - row.low.value)});
  const PolicyRow& chosen = plan.policies.rows[plan.policies.chosen];
  if (chosen.outcome && details.sensitivities.unit == "days") {
    const std::vector<double>& wall_s = chosen.outcome->wall_s;
    out.push_back({"failures, from the luckiest 10 % of runs to the unluckiest",
                   (quantile(wall_s, 0.9) - quantile(wall_s, 0.1)) / kDay_s});
  }
  std::ranges::stable_sort(out, std::greater(), &Driver::width);
  out.resize(std::min(out.size(), kDrivers));
  return out;
}

Table drivers_table(const Plan& plan, const PlanDetails& details) {
  const std::string& unit = details.sensitivities.unit;
  Table table{.title = "What drives the range", .columns = {"what", numeric("moves the result by", unit)}};
  for (const Driver& driver : drivers_of(plan, details)) table.rows.push_back({driver.what, Cell(driver.width)});
  table.note = "Each alone, with everything else as predicted. The three largest.";
  return table;
}

Cell confidence_cell(const PlanInputs& inputs, const Plan& plan) {
  const Simulated& step = plan.step;
  const double off = std::max(step.high_s / step.step_s, step.step_s / step.low_s);
  std::string out = fmt::format("{}: its step may be off by {:.2f} times (80 % interval).",
                                off <= kSure       ? "high"
                                : off <= kHalfSure ? "medium"
                                                   : "low",
                                off);
  if (inputs.own)
    out += fmt::format(" It rests on {} of your own.", counted(std::ssize(inputs.own->runs), "measured step"));
  if (!inputs.study.cluster.shared_cores()) {
    const RunFeatures features = features_of(inputs, plan.layout);
    if (const auto near = relatives(features, PublishedConstants::measured_runs(), 1); !near.empty()) {
      const MeasuredRun& run = near.front().run;
      const double error = run.predicted / run.measured - 1;
      out += fmt::format(
          " The nearest measured run is {:.1f} doublings away: {} on {:.0f} {}, predicted {:.0f} % too {} without its "
          "origin.",
          near.front().doublings, run.name, run.features.gpus, run.features.gpu, 100 * std::abs(error),
          error > 0 ? "fast" : "slow");
    }
    out += beyond_sentence(features);
  }
  return {std::move(out), off <= kSure ? Status::good : off <= kHalfSure ? Status::none : Status::warn};
}

Cell memory_margin(const PlanInputs& inputs, const Plan& plan) {
  const double limit = plan.memory_limit_bytes,
               needs = inputs.memory ? plan.memory.process.bytes : plan.memory.live.peak();
  return {limit - needs, fmt::format("{} of the {} of a {} are left at the median", format_bytes(limit - needs),
                                     format_bytes(limit), inputs.study.cluster.shared_cores() ? "rank" : "GPU")};
}

Cell risk_cell(const PlanInputs& inputs, const Plan& plan) {
  const RunDistribution& runs = plan.runs.distribution;
  const std::vector<std::string> doubts = plan_doubts(inputs, plan);
  std::string out;
  if (inputs.memory)
    out = fmt::format("Out of memory with a probability of {:.2g} % (at most {:g} % is accepted). ",
                      100 * plan.memory.process.exceeds(plan.memory_limit_bytes), 100 * plan.memory.accepted_risk);
  out += fmt::format("A run has {:.0f} failures; goodput {:.1f} %. One run of twenty takes more than {:.1f} days.",
                     runs.failures, 100 * runs.goodput, plan.cost.days.p95);
  for (const std::string& doubt : doubts) out += " " + doubt;
  return {std::move(out), doubts.empty() ? Status::none : Status::warn};
}

std::string money_text(const Cost& cost) {
  std::string out = cost_sentence(cost);
  out.erase(0, out.find(": ") + 2);
  return out;
}

std::string gpus_text(const PlanInputs& inputs, const Plan& plan) {
  const StudySpec& s = inputs.study;
  const double spares = plan.schedule.cadence.spares.value;
  return fmt::format("{} {}, {}{}", format_number(as_double(s.gpus)), s.cluster.name, counted(s.cluster.nodes, "node"),
                     spares > 0 ? fmt::format(", and {} in reserve", format_number(spares)) : "");
}

}  // namespace

Section first_page(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details) {
  const CostRange& days = plan.cost.days;
  const Simulated& step = plan.step;
  KeyValues facts;
  const auto add = [&](const char* name, Cell cell) { facts.entries.emplace_back(name, std::move(cell)); };
  add("days",
      {days.p50, fmt::format("{:.1f}; {:.1f} to {:.1f} in 90 % of the simulated runs", days.p50, days.p05, days.p95)});
  add("money", money_text(plan.cost));
  add("GPUs", gpus_text(inputs, plan));
  if (step.mfu > 0)
    add("MFU", mfu_cell({.flops_per_token = inputs.study.flops_per_token(),
                         .tokens_per_s_per_gpu = step.tokens_per_s_per_gpu,
                         .peak_flops = inputs.peak_flops}));
  add("layout", fmt::format("{}; recompute {}, microbatch {}", layout_words(plan.layout, inputs.stack),
                            to_string(plan.layout.recompute), plan.layout.microbatch));
  add("memory margin", memory_margin(inputs, plan));
  add("risk", risk_cell(inputs, plan));
  add("confidence", confidence_cell(inputs, plan));
  const std::string simple = simple_sentence(inputs, plan);
  add("simple alternative",
      simple.empty() ? "The layout is the simple one: no tensor, pipeline and context groups." : simple);
  return {"summary", "Summary", {}, {facts, finish_chart(inputs, plan), drivers_table(plan, details)}};
}

}  // namespace wt
