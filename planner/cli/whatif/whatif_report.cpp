#include "planner/cli/whatif/whatif_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/text.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/option_cells.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/plan_report.hpp"

namespace wt {
namespace {

/// Share of the computation's time that is not based on times of the row's own GPU.
double extrapolated_share(const WhatIfRow& row) {
  double share = 0;
  for (const TimedClass& each : row.plan->timed_by) share += each.points == 0 ? each.share : 0;
  return share;
}

/// Collects texts about planned rows. Each text appears once: alone if it applies to all rows, otherwise as "rows 1, 3:
/// TEXT".
class ByRow {
 public:
  explicit ByRow(const WhatIf& result)
      : planned_(static_cast<std::size_t>(
            std::ranges::count_if(result.rows, [](const WhatIfRow& row) { return row.plan.has_value(); }))) {}
  void add(std::size_t row, const std::string& text) {
    for (auto& [known, rows] : texts_)
      if (known == text) return rows.push_back(row + 1);
    texts_.push_back({text, {row + 1}});
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const auto& [text, rows] : texts_)
      out.push_back(rows.size() == planned_
                        ? text
                        : fmt::format("row{} {}: {}", rows.size() == 1 ? "" : "s", fmt::join(rows, ", "), text));
    return out;
  }

 private:
  std::size_t planned_;
  std::vector<std::pair<std::string, std::vector<std::size_t>>> texts_;
};

/// Whether the study of any row has prices.
bool any_money(const WhatIf& result) {
  return std::ranges::any_of(result.rows, [](const WhatIfRow& row) { return row.plan && row.plan->cost.money; });
}

bool any_difference(const WhatIf& result) {
  return std::ranges::any_of(result.rows, [](const WhatIfRow& row) { return row.difference.has_value(); });
}

bool differ(const WhatIf& result, std::int64_t StudySpec::*value) {
  const auto of = [&](const WhatIfRow& row) { return row.inputs.study.*value; };
  return std::ranges::any_of(result.rows, [&](const WhatIfRow& row) { return of(row) != of(result.rows.front()); });
}

bool is_swept(const WhatIf& result, const std::string& key) {
  return std::ranges::find(result.axes, key, &SweptAxis::key) != result.axes.end();
}

/// Three digits: "0.012", "3.14", "13.9", "1967".
std::string days_text(double days) {
  const double size = std::abs(days);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return size < 0.9995 ? fmt::format("{:.2g}", days) : fmt::format("{:.{}f}", days, decimals);
}
std::string signed_days(double days) { return (days < 0 ? "" : "+") + days_text(days); }

/// "3.1 days less than gpus=16 (2.2 to 5.0 less in 90 % of paired runs)"
std::string difference_text(const PairedDays& d, const std::string& than) {
  if (d.p05 < 0 && d.p95 > 0)
    return fmt::format("about as many days as {} ({} less to {} more in 90 % of paired runs)", than, days_text(-d.p05),
                       days_text(d.p95));
  const bool less = d.p50 < 0;
  const double sign = less ? -1 : 1;
  return fmt::format("{} days {} than {} ({} to {} {} in 90 % of paired runs)", days_text(sign * d.p50),
                     less ? "less" : "more", than, days_text(less ? -d.p95 : d.p05), days_text(less ? -d.p05 : d.p95),
                     less ? "less" : "more");
}

Cell money_cell(const Cost& cost) {
  return cost.money ? Cell(cost.money->p50, format_money(cost.money->p50, cost.prices->currency)) : Cell("-");
}

}  // namespace

std::string values_of(const WhatIf& result, const WhatIfRow& row) {
  std::string out;
  for (std::size_t k = 0; k < result.axes.size(); ++k)
    out += fmt::format("{}{}={}", k ? ", " : "", result.axes[k].key, row.values[k]);
  return out;
}

std::string what_if_answer(const WhatIf& result) {
  const std::string& study = result.rows.front().inputs.study.name;
  const WhatIfRow* base = result.base();
  if (base == nullptr) return fmt::format("{}: none of {} has a plan.", study, counted(result.rows.size(), "row"));
  if (!any_difference(result)) return fmt::format("{}: {:.1f} days.", study, base->days());
  const WhatIfRow* best = nullptr;  // of the rows other than the base
  for (const WhatIfRow& row : result.rows)
    if (row.difference && (best == nullptr || row.difference->p50 < best->difference->p50)) best = &row;
  if (best->difference->p50 >= 0)
    return fmt::format("{}: {} takes the fewest days, {:.1f}. The next, {}, takes {}.", study, values_of(result, *base),
                       base->days(), values_of(result, *best),
                       difference_text(*best->difference, fmt::format("{}", fmt::join(base->values, ", "))));
  return fmt::format("{}: {} takes {}: {:.1f} in place of {:.1f}.", study, values_of(result, *best),
                     difference_text(*best->difference, fmt::format("{}", fmt::join(base->values, ", "))), best->days(),
                     base->days());
}

Table what_if_table(const WhatIf& result) {
  Table table{.title = "What if: " + result.rows.front().inputs.study.name};
  for (const SweptAxis& axis : result.axes) table.columns.push_back(numeric(axis.key));
  const bool gpus_differ = differ(result, &StudySpec::gpus), gpus = gpus_differ && !is_swept(result, "gpus"),
             batches = (gpus_differ || differ(result, &StudySpec::global_batch)) &&
                       !is_swept(result, "global_train_batch_size"),
             differences = any_difference(result);
  if (gpus) table.columns.push_back(numeric("GPUs"));
  if (batches) table.columns.push_back(numeric("batch", "sequences"));
  if (differences)
    table.columns.insert(table.columns.end(), {numeric("difference", "days"), numeric("90 % of runs", "days")});
  for (const auto& [name, unit] : {std::pair{"step", "s"},
                                   {"80 % interval", "s"},
                                   {"extrapolated", "%"},
                                   {"tokens/s/GPU", ""},
                                   {"MFU", "%"},
                                   {"exposed", "s"},
                                   {"process memory", "GiB"},
                                   {"save every", "min"},
                                   {"goodput", "%"},
                                   {"P50", "days"},
                                   {"P95", "days"}})
    table.columns.push_back(numeric(name, unit));
  if (any_money(result)) table.columns.push_back(numeric("money P50"));
  table.columns.insert(table.columns.end(), {numeric("could be better by", "%"), {"layout"}});
  for (const WhatIfRow& row : result.rows) {
    std::vector<Cell> cells(row.values.begin(), row.values.end());
    if (gpus) cells.push_back(whole(row.inputs.study.gpus));
    if (batches) cells.push_back(batch_cell(row.inputs.study));
    if (row.plan) {
      if (const auto& d = row.difference)
        cells.insert(cells.end(),
                     {Cell(d->p50, signed_days(d->p50)), signed_days(d->p05) + " to " + signed_days(d->p95)});
      else if (differences)
        cells.insert(cells.end(), {"-", "-"});
      const Plan& p = *row.plan;
      const double extrapolated = 100 * extrapolated_share(row);
      cells.emplace_back(p.step.step_s);
      cells.emplace_back(format_range(p.step.low_s, p.step.high_s));
      cells.emplace_back(extrapolated, fmt::format("{:.0f}", extrapolated));
      cells.emplace_back(p.step.tokens_per_s_per_gpu);
      cells.push_back(p.step.mfu > 0 ? Cell(100 * p.step.mfu) : Cell("-"));
      for (double value :
           {p.step.exposed_s, p.memory.process.bytes / kGiB_bytes, p.schedule.cadence.interval_s.value / 60,
            100 * p.runs.distribution.goodput, p.cost.days.p50, p.cost.days.p95})
        cells.emplace_back(value);
      if (any_money(result)) cells.push_back(money_cell(p.cost));
      cells.emplace_back(100 * p.search.certificate.could_be_better());
      cells.emplace_back(fmt::format("{}, {}, microbatch {}{}", layout_label(p.layout, row.inputs.stack),
                                     to_string(p.layout.recompute), p.layout.microbatch,
                                     p.layout.placement.empty() ? "" : ", placed"));
    } else {
      while (cells.size() + 1 < table.columns.size()) cells.emplace_back("-");
      cells.push_back(no_plan_cell(row.misfit, row.failure));
    }
    table.rows.push_back(std::move(cells));
  }
  ByRow mfu(result);
  for (std::size_t i = 0; i < result.rows.size(); ++i)
    if (result.rows[i].plan && result.rows[i].plan->step.mfu > 0) mfu.add(i, mfu_definition(result.rows[i].inputs));
  table.note =
      "The layout is chosen anew in each row; set search.shard_sizes and others to one value to keep it. Extrapolated: "
      "share of the computation estimated from times of other GPUs, scaled by data sheets, or by a roofline. Could be "
      "better by: how many fewer days, or kWh, a layout that was not simulated may take; 0 is proved.";
  if (differences)
    table.note = fmt::format(
                     "Difference: days minus those of {}, run by run, with the same failures and the same error "
                     "of the predicted step; steps that differ have an error of their ratio, too. ",
                     values_of(result, *result.base())) +
                 table.note;
  if (const auto defined = mfu.texts(); !defined.empty())
    table.note += fmt::format(" MFU: {}.", fmt::join(defined, "; "));
  return table;
}

std::vector<std::string> what_if_notes(const WhatIf& result) {
  ByRow notes(result);
  for (std::size_t i = 0; i < result.rows.size(); ++i)
    if (result.rows[i].plan) notes.add(i, evidence_sentence(result.rows[i].plan->step.evidence) + ".");
  for (std::size_t i = 0; i < result.rows.size(); ++i)
    if (result.rows[i].plan)
      for (const std::string& sentence : plan_collectives(result.rows[i].inputs)) notes.add(i, sentence);
  std::vector<std::string> texts = notes.texts();
  if (!result.settings.empty())
    texts.insert(texts.begin(), fmt::format("Set in every row: {}.", fmt::join(result.settings, ", ")));
  return texts;
}

nlohmann::json what_if_json(const WhatIf& result) {
  nlohmann::json rows = nlohmann::json::array();
  for (const WhatIfRow& row : result.rows) {
    nlohmann::json one{{"values", nlohmann::json::object()},
                       {"fits", row.plan.has_value()},
                       {"gpus", row.inputs.study.gpus},
                       {"global_train_batch_size", row.inputs.study.global_batch}};
    for (std::size_t k = 0; k < result.axes.size(); ++k) one["values"][result.axes[k].key] = row.values[k];
    if (row.plan) {
      const Plan& p = *row.plan;
      one.update({{"step_s", p.step.step_s},
                  {"low_s", p.step.low_s},
                  {"high_s", p.step.high_s},
                  {"evidence", evidence_json(p.step.evidence)},
                  {"extrapolated", extrapolated_share(row)},
                  {"tokens_per_s_per_gpu", p.step.tokens_per_s_per_gpu},
                  {"mfu", p.step.mfu > 0 ? nlohmann::json(p.step.mfu) : nlohmann::json(nullptr)},
                  {"mfu_definition", mfu_json(row.inputs)},
                  {"exposed_communication_s", p.step.exposed_s},
                  {"process_bytes", p.memory.process.bytes},
                  {"interval_s", p.schedule.cadence.interval_s.value},
                  {"goodput", p.runs.distribution.goodput},
                  {"days_p50", p.cost.days.p50},
                  {"days_p95", p.cost.days.p95},
                  {"gpu_hours_p50", p.cost.gpu_hours.p50},
                  {"money_p50", p.cost.money ? nlohmann::json(p.cost.money->p50) : nlohmann::json()},
                  {"money_p95", p.cost.money ? nlohmann::json(p.cost.money->p95) : nlohmann::json()},
                  {"kwh_p50", p.cost.energy ? nlohmann::json(p.cost.energy->p50) : nlohmann::json()},
                  {"layout", p.layout.name()},
                  {"layout_words", layout_words(p.layout, row.inputs.stack)},
                  {"recompute", to_string(p.layout.recompute)},
                  {"microbatch", p.layout.microbatch},
                  {"proved", p.search.certificate.proved},
                  {"could_be_better", p.search.certificate.could_be_better()}});
      if (const auto& d = row.difference)
        one.update({{"difference_days_p50", d->p50},
                    {"difference_days_p05", d->p05},
                    {"difference_days_p95", d->p95},
                    {"shorter", d->shorter}});
    } else {
      one["reason"] = row.misfit;
    }
    rows.push_back(std::move(one));
  }
  nlohmann::json ranks = nlohmann::json::object();
  for (const SweptAxis& axis : result.axes)
    if (axis.rank_correlation) ranks[axis.key] = *axis.rank_correlation;
  return {{"schema", "windtunnel.whatif/1"},
          {"study", result.rows.front().inputs.study.name},
          {"answer", what_if_answer(result)},
          {"set", result.settings},
          {"notes", what_if_notes(result)},
          {"rank_correlation_with_days", ranks},
          {"rows", rows}};
}

}  // namespace wt
