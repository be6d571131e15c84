#include "planner/cli/plan/decision_report.hpp"

#include <algorithm>
#include <numeric>

#include "configs/base/json_members.hpp"
#include "configs/base/number.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/option_cells.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/explore_table.hpp"

namespace wt {

WT_TO_JSON(OptionWorth, cluster, changes, saves, minutes, how)

namespace {

Cell verdict(const Decision& d, std::size_t i) {
  const PlannedOption& o = d.options[i];
  const bool front = std::ranges::find(d.front, i) != d.front.end();
  if (!o.plan) return no_plan_cell(o.misfit);
  if (d.chosen == i) return Cell("chosen", Status::good);
  if (!o.feasible()) {
    const std::string why = o.in_time ? "over budget" : o.in_budget ? "too late" : "too late, over budget";
    return Cell(d.nearest == i ? why + ", the nearest" : why, Status::warn);
  }
  return Cell(front ? "on the front" : "");
}

std::string money_unit(const Decision& d) { return d.options[d.front.front()].plan->cost.prices->currency; }

/// Days over money or GPU-hours, starting at the cheapest.
Chart front_chart(const Decision& d) {
  std::vector<std::size_t> order = d.front;
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return d.options[a].spent(d.priced) < d.options[b].spent(d.priced); });
  const bool millions = d.options[order.back()].spent(d.priced) >= 1e6;
  Chart chart{.kind = ChartKind::line,
              .title = "Pareto front",
              .unit = "days",
              .series = {{.name = "expected finish"}},
              .label_axis = (millions ? "million " : "thousand ") + (d.priced ? money_unit(d) : "GPU-hours"),
              .value_axis = "finish",
              .note = "No option is done earlier and spends no more than these."};
  Series& series = chart.series.front();
  for (const std::size_t i : order) {
    const PlannedOption& o = d.options[i];
    chart.x.push_back(o.spent(d.priced) / (millions ? 1e6 : 1e3));
    chart.labels.push_back(fmt::format("{} {}", o.gpus, o.cluster) +
                           (d.batches ? fmt::format(", batch {}", o.batch) : ""));
    series.values.push_back(o.days());
    series.low.push_back(o.plan->cost.days.p05);
    series.high.push_back(o.plan->cost.days.p95);
  }
  return chart;
}

Cell millions(const std::optional<CostRange>& range, double CostRange::*which) {
  return range ? Cell((*range).*which / 1e6) : Cell("-");
}

}  // namespace

Table options_table(const Decision& d) {
  Table table{.title = "Options",
              .columns = {"cluster", numeric("GPUs"), numeric("batch", "sequences"), numeric("finish", "days"),
                          numeric("95 % of runs", "days"), numeric("GPU-hours", "million"),
                          numeric("money, P50", "million"), numeric("P95", "million"), numeric("step", "s"),
                          numeric("MFU", "%"), "layout", numeric("could be better by", "%"), ""},
              .note =
                  "Could be better by: how many fewer days, or kWh, a layout of these GPUs that was not simulated may "
                  "take; 0 is proved."};
  std::vector<std::size_t> order(d.options.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return d.chosen == i; });
  for (const std::size_t i : order) {
    const PlannedOption& o = d.options[i];
    std::vector<Cell> row{o.cluster, Cell(as_double(o.gpus)), batch_cell(o.inputs->study)};
    if (o.plan)
      row.insert(row.end(),
                 {Cell(o.days(), fmt::format("{:.1f}", o.days())),
                  Cell(o.p95_days(), fmt::format("{:.1f}", o.p95_days())), Cell(o.gpu_hours() / 1e6),
                  millions(o.plan->cost.money, &CostRange::p50), millions(o.plan->cost.money, &CostRange::p95),
                  Cell(o.plan->step.step_s), o.plan->step.mfu > 0 ? Cell(100 * o.plan->step.mfu) : Cell("-"),
                  fmt::format("{}, {}, microbatch {}", layout_label(o.plan->layout, o.inputs->stack),
                              to_string(o.plan->layout.recompute), o.plan->layout.microbatch),
                  Cell(100 * o.plan->search.certificate.could_be_better())});
    else
      row.insert(row.end(), {"-", "-", "-", "-", "-", "-", "-", "-", "-"});
    row.push_back(verdict(d, i));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> misfits(const Decision& d) {
  std::vector<std::string> out;
  for (const PlannedOption& o : d.options)
    if (!o.plan) out.push_back(fmt::format("{} {}: {}", o.gpus, o.cluster, o.misfit));
  return out;
}

Table option_worth_table(const Decision& d) {
  Table table{.title = "What to measure before one is taken",
              .columns = {"cluster", "what", numeric("would change the option", "%"),
                          numeric("saves", d.preferred_unit), numeric("takes", "min"), "how"}};
  constexpr std::size_t kShown = 8;
  for (const OptionWorth& w : d.next) {
    if (table.rows.size() == kShown) break;
    table.rows.push_back(
        {w.cluster, w.times, percent(w.changes), Cell(w.saves), w.minutes ? Cell(*w.minutes) : Cell("-"), w.how});
  }
  return table;
}

nlohmann::json decision_json(const Decision& d) {
  nlohmann::json options = nlohmann::json::array();
  for (const PlannedOption& o : d.options) {
    nlohmann::json one{{"cluster", o.cluster}, {"gpus", o.gpus}, {"global_train_batch_size", o.batch}};
    if (o.plan) {
      one["days"] = o.days();
      one["days_p95"] = o.p95_days();
      one["gpu_hours"] = o.gpu_hours();
      one["step_s"] = o.plan->step.step_s;
      one["layout"] = o.plan->layout.name();
      one["layout_words"] = layout_words(o.plan->layout, o.inputs->stack);
      one["recompute"] = to_string(o.plan->layout.recompute);
      one["microbatch"] = o.plan->layout.microbatch;
      one["could_be_better"] = o.plan->search.certificate.could_be_better();
      one["in_time"] = o.in_time;
      one["in_budget"] = o.in_budget;
      if (o.plan->cost.money) one["money_p50"] = o.plan->cost.money->p50, one["money_p95"] = o.plan->cost.money->p95;
      if (o.plan->cost.energy) one["kWh_p50"] = o.plan->cost.energy->p50;
    } else {
      one["misfit"] = o.misfit;
    }
    options.push_back(std::move(one));
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const OptionWorth& w : d.next) rows.emplace_back(w)["times"] = w.times;
  return {{"schema", "windtunnel.options/1"},
          {"answer", d.sentence},
          {"options", options},
          {"chosen", d.chosen},
          {"nearest", d.nearest},
          {"front", d.front},
          {"measure_next", {{"sentence", d.next_sentence}, {"unit", d.preferred_unit}, {"rows", rows}}}};
}

Report decision_report(const Decision& d, std::optional<double> within_s) {
  Report report;
  const PlannedOption& o = d.options[d.chosen.value_or(*d.nearest)];
  report.title = fmt::format("{}: which GPUs, how many{}", o.inputs->study.name, d.batches ? ", and which batch" : "");
  report.answer = d.sentence;
  report.status = d.chosen ? Status::good : Status::warn;
  Section section{"options", "The options", {}, {options_table(d)}};
  if (d.batches) section.paragraphs.push_back(batch_note(d));
  for (const std::string& why : misfits(d)) section.items.emplace_back(Callout{Status::bad, "No plan", why});
  if (d.front.size() > 1) section.items.emplace_back(front_chart(d));
  std::vector<std::pair<std::string, const Cost*>> costs;
  for (const PlannedOption& option : d.options)
    if (option.plan)
      costs.emplace_back(fmt::format("{} {}{}", option.gpus, option.cluster,
                                     d.batches ? fmt::format(", batch {}", option.batch) : std::string()),
                         &option.plan->cost);
  section.items.emplace_back(cost_stack(costs));
  if (!d.next.empty()) section.items.emplace_back(option_worth_table(d));
  report.sections.push_back(std::move(section));
  report.sections.push_back(
      explore_section(explored_rows(d), d.chosen.value_or(*d.nearest), o.inputs->study.prices, within_s));
  report.provenance = provenance({{"study", o.inputs->study.name}, {"times", o.inputs->basis}});
  report.payload = decision_json(d);
  return report;
}

}  // namespace wt
