#include "planner/cli/watch/watch_report.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "configs/base/quantity.hpp"

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
