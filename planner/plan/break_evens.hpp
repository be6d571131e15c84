// What inputs that nobody gives would have to be for a way to recover to pay: surfaces over two of them, by the closed
// forms of recovery_formulas.hpp. No input is made up: each axis is a range.
#pragma once
#include <string>
#include <vector>

#include "planner/cadence/cadence.hpp"

namespace wt {

/// A number, and as it is shown. NaN: there is none.
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
  std::string title;  ///< what a cell is
  std::string unit;   ///< of it
  BreakEvenAxis row, column;
  std::vector<std::vector<ShownNumber>> cells;  ///< of each row, by column
  std::string note;                             ///< what the cells assume
};

/// Failure rate x survival: goodput that local copies gain with their best interval, points; below 0 they do not pay.
/// O16, saves to storage as often as without copies; a copy takes what a save blocks, and a save leaves one, too.
BreakEvenSurface local_copies_surface(const CadenceInput& in);
/// Least survival with which they pay at any interval, to first order; above 1: never.
double least_survival_that_pays(const CadenceInput& in);
/// Failure rate x standbys: how soon hot spares have to be ready, s, so that they pay for the time that they are idle.
BreakEvenSurface hot_spares_surface(const CadenceInput& in);
/// How late silent errors are found without a check x what the check before a save takes: how often errors have to
/// strike for it to pay, per 1000 node-days.
BreakEvenSurface verification_surface(const CadenceInput& in);

}  // namespace wt
