#include "planner/cli/whatif/whatif_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
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

Cell money_cell(const Cost& cost) {
  return cost.money ? Cell(cost.money->p50, format_money(cost.money->p50, cost.prices->currency)) : Cell("-");
}

}  // namespace

Table what_if_table(const WhatIf& result) {
  Table table{.title = "What if: " + result.rows.front().inputs.study.name};
  for (const SweptAxis& axis : result.axes) table.columns.push_back(numeric(axis.key));
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
  table.columns.push_back({"layout"});
  for (const WhatIfRow& row : result.rows) {
    std::vector<Cell> cells(row.values.begin(), row.values.end());
    if (row.plan) {
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
      cells.emplace_back(fmt::format("{}, {}, microbatch {}{}", p.layout.name(), to_string(p.layout.recompute),
                                     p.layout.microbatch, p.layout.placement.empty() ? "" : ", placed"));
    } else {
      while (cells.size() + 1 < table.columns.size()) cells.emplace_back("-");
      cells.emplace_back(row.failure == Code::finding ? "does not fit" : "cannot be planned", Status::bad);
    }
    table.rows.push_back(std::move(cells));
  }
  ByRow mfu(result);
  for (std::size_t i = 0; i < result.rows.size(); ++i)
    if (result.rows[i].plan && result.rows[i].plan->step.mfu > 0) mfu.add(i, mfu_definition(result.rows[i].inputs));
  table.note =
      "The layout is chosen anew in each row; set search.shard_sizes and others to one value to keep it. Extrapolated: "
      "share of the computation estimated from times of other GPUs, scaled by data sheets, or by a roofline.";
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
    nlohmann::json one{{"values", nlohmann::json::object()}, {"fits", row.plan.has_value()}};
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
                  {"recompute", to_string(p.layout.recompute)},
                  {"microbatch", p.layout.microbatch},
                  {"proved", p.search.certificate.proved}});
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
          {"set", result.settings},
          {"notes", what_if_notes(result)},
          {"rank_correlation_with_days", ranks},
          {"rows", rows}};
}

}  // namespace wt
