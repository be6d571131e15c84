// Which change points of a series matter: those that last, exceed the scatter of the series, and are significant
// between the levels on either side. Each rejected one has a reason.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "bench/gate/change_points.hpp"

namespace wt {

/// The stricter p and the filter by size were tuned on the series of tests/data/change_points. Their results on these
/// are printed by `windtunnel gate selftest --history`.
struct ShiftOptions {
  DivisiveOptions divisive = {.max_p = 1e-4};
  double floor = 0.01;       ///< smallest relative change of the level
  double spreads = 1;        ///< smallest change in units of the series' scatter
  std::size_t shortest = 4;  ///< fewest values of a level, before and after the change
  std::size_t lasting = 6;   ///< a level with fewer values that returns to the previous one is not a shift
};

struct LevelShift {
  std::size_t index = 0;         ///< the first value at the new level
  double before = 0, after = 0;  ///< medians, in the unit of the series
  double p = 1;                  ///< Student's t between the two levels
  double threshold = 0;          ///< smallest accepted |after - before|
  std::string rejected = {};     ///< reason of a rejection; "" for a shift
  double ratio() const { return before == 0 ? 1 : after / before; }
};

struct SeriesLevels {
  double spread = 0;                      ///< scatter of a value around its level, in the unit of the series
  std::vector<LevelShift> shifts = {};    ///< in order of index
  std::vector<LevelShift> rejected = {};  ///< in order of index
};

/// Standard deviation of the values around their level, from differences between neighbours: 1.4826 x their median
/// absolute deviation / sqrt(2). Robust to steps and to outliers in up to half of the differences. 0 below three
/// values.
double scatter(const std::vector<double>& series);

/// Throws Error{usage} as change_points() does.
SeriesLevels level_shifts(const std::vector<double>& series, const ShiftOptions& options = {});

}  // namespace wt
