#include "planner/cli/watch/watch_report.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <cmath>

#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "planner/watch/ledger.hpp"

namespace wt {
namespace {

using nlohmann::json;

Cell figure(const std::string& what, std::optional<double> value, Evidence evidence) {
  if (!value) return "UNKNOWN";
  const bool share = what == "largest expert load" || what == "goodput";
  const std::string shown = what == "memory" ? format_bytes(*value)
                            : share          ? fmt::format("{:.3f}", *value)
                                             : format_seconds(*value);
  return {*value, shown, evidence};
}

/// Those that began in the last `steps` steps, and the number of the others.
std::pair<std::vector<WatchSignal>, std::int64_t> young_and_old(const std::vector<WatchSignal>& standing,
                                                                std::int64_t last_step, std::int64_t steps) {
  std::pair<std::vector<WatchSignal>, std::int64_t> out;
  for (const WatchSignal& signal : standing)
    signal.first_step > last_step - steps ? out.first.push_back(signal) : void(++out.second);
  return out;
}

std::string signed_seconds(double value) { return (value < 0 ? "-" : "+") + format_seconds(std::abs(value)); }

/// Seconds, and the share of the planned step.
std::vector<Cell> part_row(const std::string& what, std::optional<double> value, double step_s, Evidence evidence,
                           const std::string& by) {
  if (!value) return {what, "UNKNOWN", "UNKNOWN", by};
  return {what,
          {*value, signed_seconds(*value), evidence},
          {100 * *value / step_s, fmt::format("{:+.1f}", 100 * *value / step_s), evidence},
          by};
}

}  // namespace

std::string decision_line(const json& d) {
  const auto unix_s = static_cast<std::time_t>(d.at("unix_s").get<double>());
  std::string out = fmt::format("{:%Y-%m-%d %H:%M:%S}Z ", fmt::gmtime(unix_s));
  if (d.at("rule").is_string()) out += d.at("rule").get<std::string>() + ": ";
  if (const json& action = d.at("action"); action.is_object()) {
    out += action.at("hook").get<std::string>();
    if (action.contains("node")) out += " " + action.at("node").get<std::string>();
    out += ": ";
  }
  out += d.at("why").get<std::string>();
  if (const json& end = d.at("outcome"); end.is_object())
    out += fmt::format(" ({}, {})", end.at("how").get<std::string>(), format_seconds(end.at("seconds").get<double>()));
  for (const json& a : d.at("alternatives")) {
    const std::string note = a.at("note").get<std::string>();
    out += fmt::format("\n  {:<16} ", a.at("way").get<std::string>());
    if (a.at("lost_s").is_number()) out += format_seconds(a.at("lost_s").get<double>()) + " lost";
    if (!note.empty()) out += (a.at("lost_s").is_number() ? "; " : "") + note;
    if (a.at("way") == d.at("way")) out += ", taken";
  }
  return out;
}

Table standing_table(const std::vector<WatchSignal>& standing, std::int64_t last_step, std::int64_t steps) {
  const auto [young, old] = young_and_old(standing, last_step, steps);
  Table out{.title = "What still stands",
            .columns = {"signal", "metric", numeric("since step"), numeric("compared with"), numeric("limit"),
                        numeric("now")},
            .note = ""};
  const auto shown = [](double value, WatchedMetric metric) -> Cell {
    return std::isfinite(value) ? value_text(value, metric) : "-";
  };
  for (const WatchSignal& s : young)
    out.rows.push_back({s.rule, to_string(s.metric), std::to_string(s.first_step), shown(s.reference, s.metric),
                        shown(s.limit, s.metric), value_text(s.value, s.metric)});
  if (old > 0)
    out.note = fmt::format("{} began before the last {} (--last).", counted(old, "signal"), counted(steps, "step"));
  return out;
}

json standing_json(const std::string& run, const std::vector<WatchSignal>& standing, std::int64_t last_step,
                   std::int64_t steps) {
  const auto [young, old] = young_and_old(standing, last_step, steps);
  return {{"schema", "windtunnel.standing/1"},
          {"run", run},
          {"step", last_step},
          {"last", steps},
          {"older", old},
          {"signals", young}};
}

std::vector<Table> drift_tables(const PlanDrift& d) {
  Table beside{.title = "The run and its plan",
               .columns = {"figure", numeric("plan"), numeric("run")},
               .note = fmt::format("The plan's step is {} to {} in 80 of 100 cases; the run is {}.",
                                   format_seconds(d.plan.low_s), format_seconds(d.plan.high_s),
                                   d.inside ? "inside" : "outside")};
  for (const DriftRow& row : drift_rows(d))
    beside.rows.push_back(
        {row.what, figure(row.what, row.plan, Evidence::derived), figure(row.what, row.run, Evidence::measured)});
  Table parts{.title = "Where the time goes, a step",
              .columns = {"part", numeric("behind the plan"), numeric("of its step", "%"), "how"},
              .note = "What is UNKNOWN is in the computation."};
  const DriftParts& p = d.parts;
  const double step_s = d.plan.step_s;
  parts.rows = {
      part_row("computation", p.computation_s, step_s, Evidence::derived, "what remains"),
      part_row("network", p.network_s, step_s, Evidence::measured, "exposed communication"),
      part_row("routing", p.routing_s, step_s, Evidence::derived, "the plan's expert time, by the largest load"),
      part_row("input", p.input_s, step_s, Evidence::measured, "waiting for batches"),
      part_row("step", p.step_s, step_s, Evidence::measured, "sum of the above"),
      part_row("faults and saves", p.faults_s, step_s, Evidence::measured, "wall time between steps that count")};
  return {beside, parts};
}

}  // namespace wt
