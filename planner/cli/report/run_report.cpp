#include "planner/cli/report/run_report.hpp"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>

#include "configs/base/json_members.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "planner/cli/report/run_thinned.hpp"
#include "reports/render/charts.hpp"

namespace wt {

WT_TO_JSON(RunStart, connected_unix_s, loaded_unix_s, resumed_after, reached, away_s, level)
WT_TO_JSON(RunTimes, wall_s, counted_s, lost_s, away_s, saving_s)

namespace {

using nlohmann::json;
using Figure = double StepLine::*;

constexpr std::int64_t kPoints = 600;         // per chart
constexpr std::size_t kListedRestarts = 200;  // rows of the table

Cell seconds_cell(double s) { return {s, format_seconds(s)}; }

/// "100,000"
std::string grouped(std::int64_t n) { return format_number(static_cast<double>(n)); }
/// "1 step", "9,309 steps"
std::string grouped(std::size_t n, const std::string& noun) {
  return grouped(static_cast<std::int64_t>(n)) + " " + noun + (n == 1 ? "" : "s");
}

std::string moment(double unix_s) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

std::vector<double> values_of(const std::vector<StepLine>& lines, Figure figure) {
  std::vector<double> out;
  for (const StepLine& line : lines)
    if (std::isfinite(line.*figure)) out.push_back(line.*figure);
  return out;
}

/// NaN if no line has the figure.
double median_of_steps(const RunHistory& run, Figure figure) {
  const auto values = values_of(run.steps, figure);
  return values.empty() ? StepLine::kNothing : median(values);
}

ThinnedSteps thinned(const RunHistory& run) {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const auto* lines : {&run.steps, &run.lost})
    for (const StepLine& line : *lines) first = std::min(first, line.step), last = std::max(last, line.step);
  return {first, last, kPoints};
}

std::vector<Mark> resume_marks(const RunHistory& run) {
  std::vector<Mark> out;
  for (std::size_t i = 1; i < run.starts.size(); ++i) {
    const RunStart& start = run.starts[i];
    out.push_back(
        {static_cast<double>(start.resumed_after), fmt::format("resumed after step {}{}", start.resumed_after,
                                                               start.level.empty() ? "" : " from " + start.level)});
  }
  return out;
}

std::optional<Series> series_of(const ThinnedSteps& points, const std::vector<StepLine>& lines, Figure figure,
                                const std::string& name, double scale = 1) {
  auto band = points.band(lines, [&](const StepLine& line) { return scale * (line.*figure); });
  if (band.empty) return {};
  Series out{.name = name, .values = std::move(band.median)};
  // A lost and a repeated step have the same number, so that a point may have several values.
  const bool spread = !std::equal(band.low.begin(), band.low.end(), band.high.begin(),
                                  [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
  if (spread) out.low = std::move(band.low), out.high = std::move(band.high);
  return out;
}

std::string thinning_note(const ThinnedSteps& points) {
  return points.steps_each() == 1
             ? ""
             : fmt::format("A point is the median of {} steps; the band is their least and largest.",
                           points.steps_each());
}

/// Adds nothing where no step has the figure.
void add_chart(Section& section, const RunHistory& run, const ThinnedSteps& points, Chart chart,
               const std::vector<std::pair<std::string, Figure>>& figures, double scale = 1) {
  for (const auto& [name, figure] : figures)
    if (auto series = series_of(points, run.steps, figure, name, scale)) chart.series.push_back(*series);
  if (chart.series.empty()) return;
  if (figures.size() == 1)
    if (auto lost = series_of(points, run.lost, figures[0].second, "lost, done again", scale)) {
      lost->points = true;
      chart.series.push_back(*lost);
    }
  chart.kind = ChartKind::line;
  chart.x = points.x();
  chart.label_axis = "step";
  chart.marks = resume_marks(run);
  chart.marks_name = "resumed";
  chart.note = thinning_note(points);
  section.items.push_back(in_readable_unit(std::move(chart)));
}

/// One line per label, over the steps with any evaluation.
void add_evaluations(Section& section, const RunHistory& run) {
  if (run.evaluations.empty()) return;
  std::map<std::int64_t, std::map<std::string, double>> by_step;
  std::set<std::string> labels;
  for (const EvaluationLine& line : run.evaluations)
    by_step[line.step][line.label] = line.loss, labels.insert(line.label);
  Chart chart{.kind = ChartKind::line, .title = "Evaluation", .label_axis = "step", .value_axis = "loss"};
  for (const std::string& label : labels) chart.series.push_back({.name = label});
  for (const auto& [step, values] : by_step) {
    chart.x.push_back(static_cast<double>(step));
    for (Series& series : chart.series) series.values.push_back(value_or(values, series.name, StepLine::kNothing));
  }
  section.items.push_back(chart);
}

Section course(const RunHistory& run, const ThinnedSteps& points) {
  Section out{.id = "course", .title = "The course of the run"};
  if (run.starts.size() > 1)
    out.paragraphs.push_back(fmt::format(
        "Dashed lines are the {} places where the run was resumed. {}", run.starts.size() - 1,
        run.lost.empty() ? "No step was lost."
                         : fmt::format("{} lost and done again: points show them as they were before. The line shows "
                                       "each step as it was done last.",
                                       grouped(run.lost.size(), "step") + (run.lost.size() == 1 ? " was" : " were"))));
  add_chart(out, run, points, {.title = "Loss", .value_axis = "loss"}, {{"loss", &StepLine::loss}});
  add_evaluations(out, run);
  add_chart(out, run, points, {.title = "Model FLOPs utilisation", .unit = "%", .value_axis = "MFU"},
            {{"MFU", &StepLine::mfu}}, 100);
  add_chart(out, run, points, {.title = "Gradient norm", .value_axis = "norm before clipping"},
            {{"gradient norm", &StepLine::grad_norm}});
  return out;
}

Section speed(const RunHistory& run, const ThinnedSteps& points) {
  Section out{.id = "speed", .title = "Speed"};
  add_chart(out, run, points, {.title = "Tokens a second, all ranks", .unit = "1/s", .value_axis = "tokens"},
            {{"tokens/s", &StepLine::tokens_per_s}});
  add_chart(out, run, points, {.title = "Time of a step", .unit = "s", .value_axis = "time"},
            {{"step", &StepLine::step_s}, {"of it exposed communication", &StepLine::exposed_s}});
  Table table{.title = "Over all steps that count",
              .columns = {"figure", numeric("median"), numeric("slowest 1 %"), numeric("least"), numeric("largest")}};
  const auto row = [&](const std::string& name, Figure figure, bool slow_is_large, auto cell) {
    auto values = values_of(run.steps, figure);
    if (values.empty()) return;
    std::ranges::sort(values);
    const double slow = quantile(values, slow_is_large ? 0.99 : 0.01);
    table.rows.push_back({name, cell(median(values)), cell(slow), cell(values.front()), cell(values.back())});
  };
  row("time of a step", &StepLine::step_s, true, seconds_cell);
  row("exposed communication", &StepLine::exposed_s, true, seconds_cell);
  row("tokens/s", &StepLine::tokens_per_s, false, [](double v) { return Cell(v); });
  row("MFU", &StepLine::mfu, false, [](double v) { return Cell(v, fmt::format("{:.1f} %", 100 * v)); });
  row("peak tensor memory of rank 0", &StepLine::peak_bytes, true, [](double v) { return Cell(v, format_bytes(v)); });
  out.items.push_back(table);
  return out;
}

Section wall_time(const RunTimes& t) {
  Table table{.columns = {"part", numeric("time"), numeric("of the wall time", "%"), "what"},
              .note = "Goodput is the share of the first row. Saves of steps that were lost are in the last one."};
  const auto row = [&](const char* part, double s, const char* what) {
    table.rows.push_back({part, seconds_cell(s), percent(t.wall_s > 0 ? s / t.wall_s : 0), what});
  };
  row("steps that count", t.counted_s, "each step as it was done last");
  row("steps done again", t.lost_s, "what they took before they were lost");
  row("restarts", t.away_s, "from the last step before to the first step after, without these steps");
  row("saves", t.saving_s, "training stood still");
  row("rest", t.rest_s(), "the first start, and whatever is between steps");
  row("wall time", t.wall_s, "from the first start to the last step");
  return {.id = "wall-time",
          .title = "Where the wall time went",
          .paragraphs = {"All figures of this page are measured."},
          .items = {table}};
}

std::string cause_of(const RunStart& start) {
  if (!start.agent) return "not known: another launch";
  const DrillRestart& r = *start.agent;
  std::string out = r.rank >= 0 ? fmt::format("rank {}: ", r.rank) : "";
  out += r.cause.empty() ? r.message : r.cause;
  if (!r.action.empty()) out += "; " + r.action;
  return out.size() > 160 ? out.substr(0, 157) + "..." : out;
}

Section restarts(const RunHistory& run) {
  Section out{.id = "restarts", .title = "Restarts"};
  if (run.starts.size() < 2) {
    out.paragraphs = {run.starts.empty() ? "The folder does not say when the run was started (no generations.jsonl)."
                                         : "The run was never restarted."};
    return out;
  }
  Table table{.columns = {"when (UTC)", numeric("after step"), numeric("reached before"), numeric("lost", "steps"),
                          numeric("no training"), numeric("loading"), "loaded from", "cause and action"},
              .note = "No training: from the end of the last step before to the begin of the first one after."};
  for (std::size_t i = 1; i < run.starts.size() && table.rows.size() < kListedRestarts; ++i) {
    const RunStart& s = run.starts[i];
    table.rows.push_back({moment(s.connected_unix_s), whole(s.resumed_after), whole(s.reached), whole(s.lost),
                          s.away_s ? seconds_cell(*s.away_s) : Cell("no step since"),
                          seconds_cell(s.loaded_unix_s - s.connected_unix_s), s.level.empty() ? "-" : s.level,
                          cause_of(s)});
  }
  if (table.rows.size() + 1 < run.starts.size())
    table.note = fmt::format("The first {} of {} restarts. {}", table.rows.size(), run.starts.size() - 1, table.note);
  out.items.push_back(table);
  return out;
}

Section saves(const RunHistory& run) {
  Section out{.id = "checkpoints", .title = "Checkpoints"};
  if (run.saves.empty()) {
    out.paragraphs = {"No checkpoint was saved."};
    return out;
  }
  std::vector<double> blocking, total;
  for (const SaveLine& save : run.saves) blocking.push_back(save.blocking_s), total.push_back(save.total_s);
  out.items.push_back(
      KeyValues{"",
                {{"saved", whole(run.saves.size())},
                 {"newest", fmt::format("step {}", run.saves.back().step)},
                 {"bytes of rank 0", Cell(run.saves.back().bytes, format_bytes(run.saves.back().bytes))},
                 {"training stood still, median", seconds_cell(median(blocking))},
                 {"longest", seconds_cell(*std::ranges::max_element(blocking))},
                 {"valid after, median", seconds_cell(median(total))},
                 {"longest until valid", seconds_cell(*std::ranges::max_element(total))}}});
  if (run.saves.size() < 2) return out;
  // One point per save; if there are very many, only the most recent.
  const std::size_t from = run.saves.size() > kPoints ? run.saves.size() - kPoints : 0;
  Chart chart{
      .kind = ChartKind::line, .title = "Times of the saves", .unit = "s", .label_axis = "step", .value_axis = "time"};
  Series still{.name = "training stood still"}, valid{.name = "until the checkpoint was valid"};
  for (std::size_t i = from; i < run.saves.size(); ++i) {
    chart.x.push_back(static_cast<double>(run.saves[i].step));
    still.values.push_back(run.saves[i].blocking_s), valid.values.push_back(run.saves[i].total_s);
  }
  chart.series = {still, valid};
  if (from > 0) chart.note = fmt::format("The newest {} of {} saves.", kPoints, run.saves.size());
  out.items.push_back(in_readable_unit(std::move(chart)));
  return out;
}

json figures(const RunHistory& run, const RunTimes& t) {
  const auto number = [](double v) { return std::isfinite(v) ? json(v) : json(); };
  json starts = json::array();
  for (const RunStart& s : run.starts) starts.emplace_back(s)["lost_steps"] = s.lost;
  json out = t;
  out.update({{"schema", "windtunnel.run_report/1"},
              {"run", run.name},
              {"layout", run.layout},
              {"steps", run.steps.size()},
              {"last_step", run.steps.empty() ? 0 : run.steps.back().step},
              {"planned_steps", run.planned_steps},
              {"lost_steps", run.lost.size()},
              {"last_loss", number(run.steps.empty() ? StepLine::kNothing : run.steps.back().loss)},
              {"median_step_s", number(median_of_steps(run, &StepLine::step_s))},
              {"median_tokens_per_s", number(median_of_steps(run, &StepLine::tokens_per_s))},
              {"median_mfu", number(median_of_steps(run, &StepLine::mfu))},
              {"goodput", t.goodput()},
              {"checkpoints", run.saves.size()},
              {"starts", starts}});
  return out;
}

std::string answer_of(const RunHistory& run) {
  if (run.steps.empty()) return fmt::format("No step of {} is done.", run.name);
  const StepLine& last = run.steps.back();
  std::string out = run.planned_steps > 0 ? fmt::format("Step {} of {}", grouped(last.step), grouped(run.planned_steps))
                                          : fmt::format("Step {}", grouped(last.step));
  out += std::isfinite(last.loss) ? fmt::format(": loss {:.4f}", last.loss) : ": the loss is no number";
  if (const double rate = median_of_steps(run, &StepLine::tokens_per_s); std::isfinite(rate))
    out += fmt::format(", {} tokens/s", format_number(rate));
  if (const double mfu = median_of_steps(run, &StepLine::mfu); std::isfinite(mfu))
    out += fmt::format(", MFU {:.1f} %", 100 * mfu);
  if (run.diverged) out += fmt::format("; ended at step {}, whose gradients are no numbers", *run.diverged);
  return out;
}

}  // namespace

Report run_report(const RunHistory& run) {
  const RunTimes times = run_times(run);
  const auto restarted = static_cast<std::int64_t>(std::max<std::size_t>(run.starts.size(), 1) - 1);
  Report out{.title = fmt::format("Run {}", run.name.empty() ? "without a name" : run.name)};
  if (!run.layout.empty()) out.title += fmt::format(" ({}{})", run.layout, run.device.empty() ? "" : ", " + run.device);
  out.answer = answer_of(run);
  out.answer_range = fmt::format("{} in {}: goodput {:.1f} %, {}, {} lost and done again",
                                 grouped(run.steps.size(), "step"), format_seconds(times.wall_s), 100 * times.goodput(),
                                 counted(restarted, "restart"), grouped(run.lost.size(), "step"));
  out.status = run.diverged ? Status::bad : Status::none;
  if (!run.steps.empty()) {
    const ThinnedSteps points = thinned(run);
    out.sections.push_back(course(run, points));
    out.sections.push_back(speed(run, points));
  }
  out.sections.push_back(wall_time(times));
  if (!run.torn.empty())
    out.sections.back().paragraphs.push_back(
        fmt::format("Left out, because they are half written: {}.", fmt::join(run.torn, ", ")));
  out.sections.push_back(restarts(run));
  out.sections.push_back(saves(run));
  out.provenance = provenance();
  out.payload = figures(run, times);
  return out;
}

}  // namespace wt
