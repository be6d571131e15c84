#include "bench/gate/history_alerts.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace wt {
namespace {

std::size_t distance(std::size_t a, std::size_t b) { return a < b ? b - a : a - b; }

/// An alert that was raised and not withdrawn, and its current index in the series.
struct OpenAlert {
  AlertRecord alert;
  std::size_t index;
};

/// The open alerts of one series.
std::vector<OpenAlert> open_alerts(const History& history, const HistorySeries& series) {
  std::vector<OpenAlert> open;
  for (const AlertRecord& alert : history.alerts) {
    if (alert.benchmark != series.benchmark || alert.environment != series.environment) continue;
    const auto at =
        std::ranges::find_if(series.points, [&](const HistoryPoint& point) { return point.run == alert.run; });
    if (at == series.points.end()) continue;  // another unit, or the run's file was removed
    if (alert.withdrawn)
      open.erase(std::remove_if(open.begin(), open.end(), [&](const OpenAlert& s) { return s.alert.run == alert.run; }),
                 open.end());
    else
      open.push_back({alert, static_cast<std::size_t>(at - series.points.begin())});
  }
  return open;
}

/// Number of runs between a shift and the nearest run of a commit.
std::size_t runs_between(const LevelShift& shift, const HistorySeries& series, const std::string& commit) {
  std::size_t least = series.points.size();
  for (std::size_t i = 0; i < series.points.size(); ++i)
    if (same_commit(series.points[i].commit, commit)) least = std::min(least, distance(i, shift.index));
  return least;
}

/// Reasons of the accepted shifts, by index. An acceptance applies only to the nearest shift.
std::map<std::size_t, std::string> accepted_shifts(const std::vector<LevelShift>& shifts, const History& history,
                                                   const HistorySeries& series) {
  std::map<std::size_t, std::string> reasons;
  for (const Acceptance& accepted : history.accepted) {
    if (!accepted.benchmark.empty() && accepted.benchmark != series.benchmark) continue;
    std::size_t least = kSameShift + 1;
    const LevelShift* nearest = nullptr;
    for (const LevelShift& shift : shifts)
      if (const std::size_t far = runs_between(shift, series, accepted.commit); far < least)
        least = far, nearest = &shift;
    if (nearest != nullptr) reasons.emplace(nearest->index, accepted.reason);
  }
  return reasons;
}

/// The reason for which there is no longer a shift at `index`.
std::string withdrawal_reason(const SeriesLevels& levels, std::size_t index) {
  for (const LevelShift& each : levels.rejected)
    if (distance(each.index, index) <= kSameShift) return each.rejected;
  return "no change point any more";
}

/// Whether each shift already has an alert. Removes these alerts from `open`. An alert belongs to the nearest shift
/// of its direction, because two shifts may be closer than kSameShift.
std::vector<bool> known_shifts(const std::vector<LevelShift>& shifts, std::vector<OpenAlert>& open) {
  std::vector<bool> known(shifts.size());
  std::vector<OpenAlert> lost;
  for (OpenAlert& alert : open) {
    std::optional<std::size_t> nearest;
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      const std::size_t far = distance(alert.index, shifts[i].index);
      if (far > kSameShift || (alert.alert.ratio > 1) != (shifts[i].ratio() > 1)) continue;
      if (!nearest || far < distance(alert.index, shifts[*nearest].index)) nearest = i;
    }
    if (nearest)
      known[*nearest] = true;
    else
      lost.push_back(std::move(alert));
  }
  open = std::move(lost);
  return known;
}

JudgedSeries judge_series(const History& history, const HistorySeries& series, const ShiftOptions& options,
                          std::vector<AlertRecord>& new_alerts) {
  JudgedSeries judged{&series, {}, {}};
  std::vector<double> values;
  for (const HistoryPoint& point : series.points) values.push_back(point.median);
  judged.levels = level_shifts(values, options);
  std::vector<OpenAlert> open = open_alerts(history, series);
  const HistoryPoint& newest = series.points.back();
  const auto say = [&](const LevelShift& shift, const SeriesShift& found) {
    new_alerts.push_back({false, series.environment, series.benchmark, series.points[shift.index].run, found.before,
                          found.commit, shift.ratio(), "", newest.run, ""});
  };
  const std::vector<bool> known = known_shifts(judged.levels.shifts, open);
  const std::map<std::size_t, std::string> accepted = accepted_shifts(judged.levels.shifts, history, series);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const LevelShift& shift = judged.levels.shifts[i];
    SeriesShift found{shift, (shift.after > shift.before) == series.smaller_is_better,
                      series.points[shift.index - 1].commit, series.points[shift.index].commit};
    if (known[i]) found.state = ShiftState::known;
    if (const auto reason = accepted.find(shift.index); reason != accepted.end()) {
      found.state = ShiftState::accepted;
      found.reason = reason->second;
    }
    if (found.state == ShiftState::fresh) say(shift, found);
    judged.shifts.push_back(std::move(found));
  }
  for (const OpenAlert& lost : open) {
    if (series.points.size() - lost.index < options.lasting) continue;  // too few values to decide
    AlertRecord record = lost.alert;
    record.withdrawn = true;
    record.reason = withdrawal_reason(judged.levels, lost.index);
    record.by = newest.run;
    record.date.clear();
    new_alerts.push_back(std::move(record));
  }
  return judged;
}

}  // namespace

std::string to_string(ShiftState state) {
  return state == ShiftState::fresh ? "new" : state == ShiftState::known ? "known" : "accepted";
}

bool HistoryJudgement::has_regression() const {
  return std::ranges::any_of(series, [](const JudgedSeries& judged) {
    return std::ranges::any_of(judged.shifts,
                               [](const SeriesShift& s) { return s.worse && s.state == ShiftState::fresh; });
  });
}

HistoryJudgement judge_history(const History& history, const ShiftOptions& options) {
  HistoryJudgement judgement;
  for (const HistorySeries& series : history.series)
    judgement.series.push_back(judge_series(history, series, options, judgement.new_alerts));
  return judgement;
}

}  // namespace wt
