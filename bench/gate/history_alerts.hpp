// Alerts from a history: each change is reported once, and withdrawn if later values contradict it.
#pragma once
#include <string>
#include <vector>

#include "bench/gate/history.hpp"
#include "bench/gate/level_shifts.hpp"

namespace wt {

/// A shift within this many values of a known one in the same direction counts as the same: further values can move its
/// place.
constexpr std::size_t kSameShift = 5;

enum class ShiftState {
  fresh,    ///< not reported yet
  known,    ///< already reported
  accepted  ///< an intended change
};
std::string to_string(ShiftState state);  ///< "new", "known", "accepted"

struct SeriesShift {
  LevelShift shift;
  bool worse = false;          ///< by the benchmark's direction
  std::string before, commit;  ///< the change is after commit `before` and not after `commit`
  ShiftState state = ShiftState::fresh;
  std::string reason = {};  ///< of an acceptance
};

struct JudgedSeries {
  const HistorySeries* series = nullptr;
  SeriesLevels levels;
  std::vector<SeriesShift> shifts;  ///< one per levels.shifts
};

struct HistoryJudgement {
  std::vector<JudgedSeries> series;     ///< as in the history
  std::vector<AlertRecord> new_alerts;  ///< to report and record: fresh shifts, and withdrawn alerts
  /// Whether a new alert reports a change for the worse.
  bool has_regression() const;
};

/// An alert is withdrawn if no shift is near it any more once ShiftOptions::lasting values follow it. Accepted changes
/// raise no alert. A shift that returns after a withdrawal is reported again. The history must outlive the
/// judgement. Throws Error{usage} as level_shifts() does.
HistoryJudgement judge_history(const History& history, const ShiftOptions& options = {});

}  // namespace wt
