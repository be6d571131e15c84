// Which change points of a series matter: those that last, that are larger than the scatter of the series, and that are
// certain between the levels on either side. Each one left out says why.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "bench/gate/change_points.hpp"

namespace wt {

/// The stricter p and the effect filter were chosen on the series of tests/data/change_points; `windtunnel gate
/// selftest --history` says what they give there.
struct ShiftOptions {
  DivisiveOptions divisive = {.max_p = 1e-4};
  double floor = 0.01;       ///< a change of the level by less than this share of it is none
  double spreads = 1;        ///< nor is one smaller than this many times the scatter of the series
  std::size_t shortest = 4;  ///< a level holds this many values, before the change and after it
  std::size_t lasting = 6;   ///< of fewer values a level that went back to the one before it is none
};

struct LevelShift {
  std::size_t index = 0;         ///< of the first value at the new level
  double before = 0, after = 0;  ///< medians, in the unit of the series
  double p = 1;                  ///< Student's t between the two levels
  double threshold = 0;          ///< what |after - before| must reach
  std::string rejected = {};     ///< why it is none; "" for a shift
  double ratio() const { return before == 0 ? 1 : after / before; }
};

struct SeriesLevels {
  double spread = 0;                      ///< scatter of one value about its level, in the unit of the series
  std::vector<LevelShift> shifts = {};    ///< in order of index
  std::vector<LevelShift> rejected = {};  ///< in order of index
};

/// Standard deviation of the values about their level, from the differences between neighbours: 1.4826 x their median
/// absolute deviation / sqrt(2). Steps and up to half of all values may be wild. 0 below three values.
double scatter(const std::vector<double>& series);

/// Throws Error{usage} as change_points() does.
SeriesLevels level_shifts(const std::vector<double>& series, const ShiftOptions& options = {});

}  // namespace wt
