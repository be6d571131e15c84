// Break-even surfaces: the values of two unknown inputs at which a recovery policy pays, by the closed forms of
// recovery_formulas.hpp. No value is assumed: each axis is a range.
#pragma once
#include <string>
#include <vector>

#include "planner/cadence/cadence.hpp"

namespace wt {

/// A number and its text. NaN: no value.
struct ShownNumber {
  double value = 0;
  std::string text;
};

struct BreakEvenAxis {
  std::string name;
  std::string unit;
  std::vector<ShownNumber> values;
};

struct BreakEvenSurface {
  std::string policy;
  std::string title;  ///< the quantity in a cell
  std::string unit;   ///< of the cells
  BreakEvenAxis row, column;
  std::vector<std::vector<ShownNumber>> cells;  ///< [row][column]
  std::string note;                             ///< assumptions of the cells
};

/// Failure rate x survival: goodput gained by local copies at their best interval, in percentage points; below 0 they
/// do not pay. Uses O16 with unchanged saves to storage. A copy blocks as long as a save, and a save leaves a copy,
/// too.
BreakEvenSurface local_copies_surface(const CadenceInput& in);
/// Least survival with which local copies pay at any interval, to first order; above 1: they never pay.
double least_survival_that_pays(const CadenceInput& in);
/// Failure rate x standbys: longest activation of hot spares, in seconds, with which they pay for their idle time.
BreakEvenSurface hot_spares_surface(const CadenceInput& in);
/// Time until an unverified silent error is found x time of a verification before each save: least rate of errors, per
/// 1000 node-days, at which verification pays.
BreakEvenSurface verification_surface(const CadenceInput& in);

}  // namespace wt
