// What a history says to people: a change once, nothing twice, and a word when it was nothing after all.
#pragma once
#include <string>
#include <vector>

#include "bench/gate/history.hpp"
#include "bench/gate/level_shifts.hpp"

namespace wt {

/// A shift this many values or fewer from a known one of the same direction is the same one: more values move it.
constexpr std::size_t kSameShift = 5;

enum class ShiftState {
  fresh,    ///< not said yet
  known,    ///< said before
  accepted  ///< wanted
};
std::string to_string(ShiftState state);  ///< "new", "known", "accepted"

struct SeriesShift {
  LevelShift shift;
  bool worse = false;          ///< in the direction of the benchmark
  std::string before, commit;  ///< the change lies behind `before`, at `commit` at the latest
  ShiftState state = ShiftState::fresh;
  std::string reason = {};  ///< of an accepted one
};

struct JudgedSeries {
  const HistorySeries* series = nullptr;
  SeriesLevels levels;
  std::vector<SeriesShift> shifts;  ///< as levels.shifts
};

struct HistoryJudgement {
  std::vector<JudgedSeries> series;  ///< as in the history
  std::vector<AlertRecord> news;     ///< to be said and recorded: fresh shifts, and alerts that are withdrawn
  /// Whether the news have a change for the worse.
  bool has_regression() const;
};

/// An alert is withdrawn when there is no shift any more near its place, ShiftOptions::lasting values after it; of a
/// change that is accepted none is raised. One that comes back after that is raised again. The history must outlive the
/// judgement. Throws Error{usage} as level_shifts() does.
HistoryJudgement judge_history(const History& history, const ShiftOptions& options = {});

}  // namespace wt
