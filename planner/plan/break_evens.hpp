// Break-even surfaces: the values of two unknown inputs at which a recovery policy pays off, by the closed forms of
// recovery_formulas.hpp. No value is assumed; each axis covers a range.
#pragma once
#include <string>
#include <vector>

#include "planner/cadence/cadence.hpp"

namespace wt {

/// A number and its text. NaN: there is no value.
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

/// Failure rate x survival: goodput that local copies gain at their best interval, in percentage points; below 0 they
/// do not pay off. Uses O16 with unchanged saves to storage. A copy blocks as long as a save, and a save also leaves a
/// copy.
BreakEvenSurface local_copies_surface(const CadenceInput& in);
/// Smallest survival with which local copies pay off at some interval, to first order; above 1: they never do.
double least_survival_that_pays(const CadenceInput& in);
/// Failure rate x standbys: longest activation of hot spares, in seconds, that still pays for their idle time.
BreakEvenSurface hot_spares_surface(const CadenceInput& in);
/// Time until an unverified silent error is found x time of a verification before each save: smallest rate of errors,
/// per 1000 node-days, at which verification pays off.
BreakEvenSurface verification_surface(const CadenceInput& in);

}  // namespace wt
