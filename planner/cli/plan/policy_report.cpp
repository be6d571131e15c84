#include "planner/cli/plan/policy_report.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/json_members.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/run.hpp"
#include "planner/cadence/recovery_formulas.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/plan/plan_sections.hpp"

namespace wt {

using nlohmann::json;

/// "never" becomes null.
static void to_json(json& out, const ShownNumber& number) {
  out = std::isfinite(number.value) ? json(number.value) : json();
}
WT_TO_JSON(BreakEvenAxis, name, unit, values)
WT_TO_JSON(BreakEvenSurface, policy, title, unit, row, column, cells)
WT_TO_JSON(PairedDifference, mean, low, high)
static void to_json(json& out, const PolicyRow& row) {
  out = {{"policy", row.policy}};
  if (!row.outcome) {
    out.update({{"unknown", row.missing}, {"break_even", row.break_even}});
    return;
  }
  const PolicyOutcome& o = *row.outcome;
  const auto [least, most] = std::ranges::minmax(o.goodputs);
  out.update(
      {{"how", row.how},
       {"spares", row.spares},
       {"interval_s", row.interval_s},
       {"goodput",
        {{"median", o.median_goodput()}, {"p10", o.p10_goodput()}, {"least", least}, {"most", most}, {"cv", o.cv()}}},
       {"finish_s", o.median_s()},
       {"finished", o.finished},
       {"failures", o.failures},
       {"failures_without_spare", o.without_spare},
       {"difference", *row.difference}});
}

namespace {

constexpr double kNoCleanSave = 0.01;  // accepted probability that all kept saves contain a silent error

/// Percent of wall time with two decimals.
Cell share(double value) { return Cell(100 * value, fmt::format("{:.2f}", 100 * value)); }

std::vector<Cell> known_row(const PolicyRow& row) {
  const PolicyOutcome& o = *row.outcome;
  const auto [least, most] = std::ranges::minmax(o.goodputs);
  const PairedDifference& d = *row.difference;
  return {row.policy,
          whole(row.spares),
          share(o.median_goodput()),
          share(o.p10_goodput()),
          share(least),
          share(most),
          share(o.cv()),
          Cell(o.median_s() / kDay_s,
               fmt::format("{}{:.2f}", 2 * o.finished < std::ssize(o.wall_s) ? "> " : "", o.median_s() / kDay_s)),
          Cell(100 * d.mean, fmt::format("{:+.2f} ({:+.2f} to {:+.2f})", 100 * d.mean, 100 * d.low, 100 * d.high))};
}

double saves_of(const Plan& plan) {
  return std::ceil(as_double(plan.schedule.steps) / as_double(plan.schedule.cadence.interval_steps));
}

/// Number of saves to keep, so that one predates a silent error with this mean time until detection.
std::int64_t saves_to_keep(double interval_s, double latency_s) {
  std::int64_t kept = 1;
  while (no_clean_save(interval_s, latency_s, kept) > kNoCleanSave) ++kept;
  return kept;
}

std::string written_sentence(const Plan& plan) {
  const double bytes = plan.schedule.checkpoint.total_bytes, saves = saves_of(plan);
  const SourcedNumber& slowdown = plan.schedule.input.slowdown;
  return fmt::format(
      "A save to storage is {}; {} saves write {}, and {} are kept ({}). While one persists, training loses {:.2g} % "
      "of that time{}.",
      format_bytes(bytes), format_number(saves), format_bytes(saves * bytes), RunSpec{}.keep_checkpoints,
      format_bytes(as_double(RunSpec{}.keep_checkpoints) * bytes), 100 * slowdown.value,
      slowdown.value > 0 ? fmt::format(" ({}: {})", to_string(slowdown.evidence.kind), slowdown.evidence.source) : "");
}

std::string retention_sentence(const Plan& plan) {
  const double interval_s = plan.schedule.cadence.interval_s.value;
  return fmt::format(
      "A silent error that is found after an hour in the mean needs {} kept saves, so that in 99 % of cases one is "
      "older than the error; one found after a day needs {}.",
      saves_to_keep(interval_s, 3600), saves_to_keep(interval_s, kDay_s));
}

}  // namespace

Table policies_table(const PolicyTable& policies) {
  Table table{.title = "Recovery policies on the same traces",
              .columns = {"policy", numeric("spares", "nodes"), numeric("goodput, median", "%"), numeric("P10", "%"),
                          numeric("least", "%"), numeric("most", "%"), numeric("variation", "%"),
                          numeric("finish, median", "days"), numeric("difference from restart from storage", "points")},
              .note = fmt::format(
                  "Derived: {} simulated traces of faults by wall clock, the same for every policy. P10: 90 % of "
                  "traces do better. Difference: mean of the paired differences of goodput, and its 95 % interval.",
                  policies.traces)};
  for (const PolicyRow& row : policies.rows) {
    if (row.outcome)
      table.rows.push_back(known_row(row));
    else
      table.rows.push_back({row.policy, "", Cell("UNKNOWN", Status::warn), "", "", "", "", "", ""});
  }
  return table;
}

Table break_even_table(const PolicyTable& policies) {
  Table table{.title = "What the unknown ones need", .columns = {"policy", "missing input", "break-even"}};
  for (const PolicyRow& row : policies.rows)
    if (!row.outcome) table.rows.push_back({row.policy, row.missing, row.break_even});
  return table;
}

Table surface_table(const BreakEvenSurface& surface) {
  Table table{.title = fmt::format("{} [{}]", surface.title, surface.unit),
              .columns = {numeric(surface.row.name, surface.row.unit)},
              .note = surface.note};
  for (const ShownNumber& column : surface.column.values)
    table.columns.push_back(numeric(fmt::format("{} {}", surface.column.name, column.text)));
  for (std::size_t i = 0; i < surface.cells.size(); ++i) {
    auto& row = table.rows.emplace_back();
    row.emplace_back(surface.row.values[i].value, surface.row.values[i].text);
    for (const ShownNumber& cell : surface.cells[i]) row.emplace_back(cell.value, cell.text);
  }
  return table;
}

json policies_json(const PolicyTable& policies) {
  return {{"schema", "windtunnel.policies/1"},
          {"traces", policies.traces},
          {"ranked_by", policies.by_p10 ? "p10" : "median"},
          {"reference", policies.rows[policies.reference].policy},
          {"chosen", policies.rows[policies.chosen].policy},
          {"choice", policies.choice},
          {"rows", policies.rows},
          {"surfaces", policies.surfaces}};
}

json saves_json(const Plan& plan) {
  const double bytes = plan.schedule.checkpoint.total_bytes;
  return {{"bytes", bytes},
          {"saves", saves_of(plan)},
          {"written_bytes", saves_of(plan) * bytes},
          {"kept", RunSpec{}.keep_checkpoints},
          {"slowdown_while_persisting", plan.schedule.input.slowdown.value}};
}

Section policies_section(const Plan& plan) {
  Section s{.id = "policies", .title = "Recovery policies", .paragraphs = {plan.policies.choice}};
  KeyValues how{.title = "What happens after a loss"};
  for (const PolicyRow& row : plan.policies.rows)
    if (row.outcome) how.entries.emplace_back(row.policy, row.how);
  s.items.push_back(policies_table(plan.policies));
  s.items.push_back(std::move(how));
  if (Table unknown = break_even_table(plan.policies); !unknown.rows.empty()) s.items.push_back(std::move(unknown));
  for (const BreakEvenSurface& surface : plan.policies.surfaces) s.items.push_back(surface_table(surface));
  s.paragraphs.push_back(written_sentence(plan));
  s.paragraphs.push_back(retention_sentence(plan));
  return s;
}

Report policies_report(const PlanInputs& inputs, const Plan& plan) {
  Report report{.title = "Recovery policies: " + inputs.study.name,
                .answer = plan.policies.choice,
                .status = Status::good,
                .sections = {policies_section(plan)}};
  report.sections[0].paragraphs.erase(report.sections[0].paragraphs.begin());  // it repeats the answer
  report.payload = policies_json(plan.policies);
  return report;
}

}  // namespace wt
