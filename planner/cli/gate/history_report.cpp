#include "planner/cli/gate/history_report.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "configs/base/json_members.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/gate/gate_format.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "reports/render/charts.hpp"

namespace wt {

using nlohmann::json;

WT_TO_JSON(HistoryPoint, run, commit, built, measured, host, median, low, high, samples)
WT_TO_JSON(HistorySeries, benchmark, environment, facts, unit, smaller_is_better, points)
static void to_json(json& out, const LevelShift& s) {
  out = {{"index", s.index}, {"before", s.before},       {"after", s.after},
         {"p", s.p},         {"threshold", s.threshold}, {"ratio", s.ratio()}};
}
static void to_json(json& out, const SeriesShift& each) {
  out = each.shift;
  out.update({{"state", to_string(each.state)},
              {"worse", each.worse},
              {"before_commit", each.before},
              {"commit", each.commit},
              {"reason", each.reason}});
}

namespace {

std::string short_commit(const std::string& commit) {
  const std::size_t dirty = commit.find('-');
  return commit.empty() ? "unknown" : commit.substr(0, 9) + (dirty == std::string::npos ? "" : commit.substr(dirty));
}

/// The commits that may have caused the change, as `git log` accepts them.
std::string commit_range(const SeriesShift& s) {
  if (same_commit(s.before, s.commit)) return fmt::format("none: {} before and after", short_commit(s.commit));
  return fmt::format("{}..{}", short_commit(s.before), short_commit(s.commit));
}

std::string worse_or_better(bool worse) { return worse ? "worse" : "better"; }

std::string built_day(const std::string& date) { return date.substr(0, 10); }

struct ShiftRow {
  const JudgedSeries* judged;
  const SeriesShift* shift;
};

/// New ones first, then worse ones, then by size.
std::vector<ShiftRow> shift_rows(const HistoryJudgement& judgement) {
  std::vector<ShiftRow> rows;
  for (const JudgedSeries& judged : judgement.series)
    for (const SeriesShift& shift : judged.shifts) rows.push_back({&judged, &shift});
  std::ranges::stable_sort(rows, [](const ShiftRow& a, const ShiftRow& b) {
    if (a.shift->state != b.shift->state) return a.shift->state < b.shift->state;
    if (a.shift->worse != b.shift->worse) return a.shift->worse;
    const auto size = [](const ShiftRow& row) { return std::abs(row.shift->shift.ratio() - 1); };
    return size(a) > size(b);
  });
  return rows;
}

Table changes_table(const std::vector<ShiftRow>& rows) {
  Table table{.columns = {"state", "direction", numeric("change", "%"), numeric("before"), numeric("after"),
                          numeric("p"), "commits", "since", "benchmark", "environment", "accepted because"},
              .note = "Commits: what `git log` takes. Levels are medians between two changes; p is Student's t."};
  for (const auto& [judged, s] : rows) {
    const HistorySeries& series = *judged->series;
    const bool alarm = s->worse && s->state == ShiftState::fresh;
    table.rows.push_back({{to_string(s->state), alarm ? Status::bad : Status::none},
                          worse_or_better(s->worse),
                          signed_percent(s->shift.ratio() - 1),
                          gate_value(s->shift.before, series.unit),
                          gate_value(s->shift.after, series.unit),
                          {s->shift.p, fmt::format("{:.1g}", s->shift.p)},
                          commit_range(*s),
                          built_day(series.points[s->shift.index].built),
                          series.benchmark,
                          series.environment,
                          s->reason});
  }
  return table;
}

/// Needs three runs.
Cell scatter_cell(const JudgedSeries& judged) {
  const auto& points = judged.series->points;
  if (points.size() < 3 || points.back().median == 0) return "-";
  return percent(judged.levels.spread / points.back().median);
}

Table series_table(const HistoryJudgement& judgement) {
  Table table{.columns = {"benchmark", "environment", numeric("runs"), numeric("newest"), numeric("scatter", "%"),
                          numeric("changes"), numeric("left out")},
              .note =
                  "Scatter: of one run about its level. A change smaller than this, or than 1 %, is none. Left out: "
                  "change points that do not last, are within the scatter or are not certain; the JSON says which."};
  for (const JudgedSeries& judged : judgement.series) {
    const HistoryPoint& newest = judged.series->points.back();
    table.rows.push_back({judged.series->benchmark, judged.series->environment, whole(judged.series->points.size()),
                          gate_value(newest.median, judged.series->unit), scatter_cell(judged),
                          whole(judged.shifts.size()), whole(judged.levels.rejected.size())});
  }
  return table;
}

Chart series_chart(const JudgedSeries& judged) {
  const HistorySeries& series = *judged.series;
  Chart chart{.kind = ChartKind::line, .title = series.benchmark, .unit = series.unit};
  chart.label_axis = "commit";
  chart.named_x = true;
  chart.marks_name = "changed";
  Series measured{.name = "median of a run, with its quartiles", .evidence = Evidence::measured};
  Series level{.name = "level"};
  std::size_t next = 0;
  double now = judged.shifts.empty() ? 0 : judged.shifts.front().shift.before;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const HistoryPoint& point = series.points[i];
    chart.x.push_back(static_cast<double>(i + 1));
    chart.labels.push_back(short_commit(point.commit));
    measured.values.push_back(point.median);
    measured.low.push_back(point.low);
    measured.high.push_back(point.high);
    if (next < judged.shifts.size() && judged.shifts[next].shift.index == i) {
      const SeriesShift& s = judged.shifts[next++];
      now = s.shift.after;
      chart.marks.push_back(
          {static_cast<double>(i + 1),
           fmt::format("{}: {} {}", commit_range(s), gate_change(s.shift.ratio()), to_string(s.state))});
    }
    level.values.push_back(now);
  }
  chart.series.push_back(std::move(measured));
  if (!judged.shifts.empty()) chart.series.push_back(std::move(level));
  chart.note = fmt::format("{}; {} ({}) to {} ({}).", series.environment, short_commit(series.points.front().commit),
                           built_day(series.points.front().built), short_commit(series.points.back().commit),
                           built_day(series.points.back().built));
  return in_readable_unit(std::move(chart));
}

json history_payload(const History& history, const HistoryJudgement& judgement) {
  json all = json::array(), new_alerts = json::array();
  for (const JudgedSeries& judged : judgement.series) {
    json rejected = json::array();
    for (const LevelShift& each : judged.levels.rejected) rejected.emplace_back(each)["rejected"] = each.rejected;
    all.emplace_back(*judged.series)
        .update({{"scatter", judged.levels.spread}, {"shifts", judged.shifts}, {"left_out", std::move(rejected)}});
  }
  for (const AlertRecord& a : judgement.new_alerts)
    new_alerts.push_back({{"said", a.withdrawn ? "withdrawn" : "raised"},
                          {"benchmark", a.benchmark},
                          {"environment", a.environment},
                          {"before", a.before},
                          {"commit", a.commit},
                          {"ratio", a.ratio},
                          {"reason", a.reason}});
  return {{"schema", "windtunnel.gate-history-report/1"},
          {"runs", history.runs},
          {"torn", history.torn},
          {"series", std::move(all)},
          {"new_alerts", std::move(new_alerts)}};
}

}  // namespace

std::string new_alerts_text(const HistoryJudgement& judgement) {
  std::string text;
  for (const AlertRecord& a : judgement.new_alerts) {
    const auto judged = std::ranges::find_if(judgement.series, [&](const JudgedSeries& j) {
      return j.series->benchmark == a.benchmark && j.series->environment == a.environment;
    });
    const bool worse = judged != judgement.series.end() && (a.ratio > 1) == judged->series->smaller_is_better;
    text += fmt::format("{:<9}  {:<6}  {:>8}  {}  behind {}..{}{}\n", a.withdrawn ? "withdrawn" : "new",
                        worse_or_better(worse), gate_change(a.ratio), a.benchmark, short_commit(a.before),
                        short_commit(a.commit), a.withdrawn ? fmt::format(": {}", a.reason) : "");
  }
  return text.empty() ? "Nothing new.\n" : text;
}

Report history_report(const History& history, const HistoryJudgement& judgement, std::size_t most_charts) {
  const std::vector<ShiftRow> rows = shift_rows(judgement);
  const auto count = [&](auto holds) { return std::ranges::count_if(rows, holds); };
  const auto fresh = count([](const ShiftRow& r) { return r.shift->state == ShiftState::fresh; });
  const auto worse = count([](const ShiftRow& r) { return r.shift->worse && r.shift->state != ShiftState::accepted; });
  Report report{.title = "Gate history",
                .answer = rows.empty() ? std::string("Nothing changed") : counted(rows.size(), "change")};
  report.answer += fmt::format(" in {} series of {}", judgement.series.size(), counted(history.runs, "run"));
  if (!rows.empty()) report.answer += fmt::format(": {} new, {} for the worse and not accepted", fresh, worse);
  report.answer += ".";
  report.status = judgement.has_regression() ? Status::bad : worse > 0 ? Status::warn : Status::good;
  Section section{.id = "changes", .title = "Changes"};
  if (rows.empty())
    section.paragraphs.push_back("No level changed by more than the scatter of its series.");
  else
    section.items.emplace_back(changes_table(rows));
  if (history.torn > 0)
    section.items.emplace_back(
        Callout{Status::warn, "Cut off",
                fmt::format("{} without its end left out; record the run again.", counted(history.torn, "line"))});
  report.sections.push_back(std::move(section));
  Section list{.id = "series", .title = "Series", .items = {series_table(judgement)}};
  report.sections.push_back(std::move(list));
  Section charts{.id = "charts", .title = "Charts"};
  for (bool changed : {true, false})
    for (const JudgedSeries& judged : judgement.series)
      if (judged.shifts.empty() != changed && judged.series->points.size() > 1 && charts.items.size() < most_charts)
        charts.items.emplace_back(series_chart(judged));
  if (!charts.items.empty() && charts.items.size() < judgement.series.size())
    charts.paragraphs.push_back(
        fmt::format("{} of {} series, those that changed first. A series of one run has no chart.", charts.items.size(),
                    judgement.series.size()));
  if (!charts.items.empty()) report.sections.push_back(std::move(charts));
  report.provenance = provenance();
  report.payload = history_payload(history, judgement);
  return report;
}

}  // namespace wt
