// How much longer one alternative takes than another: what a choice between them rests on, and what errors that both
// share do not touch.
#pragma once
#include <string>
#include <vector>

#include "sim/validate/judged.hpp"

namespace wt {

/// Of two rows of one choice, the one measured slower over the other.
struct Ratio {
  std::string choice, slower, faster;  ///< Judged::choice and alternative
  double measured = 0, predicted = 0, baseline = 0;
};

/// Every pair of every choice whose rows both have a prediction and a baseline, in the order of rows.
std::vector<Ratio> ratios(const std::vector<Judged>& rows);

/// Mean and largest size of predicted / measured - 1.
struct RatioError {
  double mean = 0, largest = 0;
};
/// `which` = &Ratio::predicted or &Ratio::baseline. Throws Error{usage} without ratios.
RatioError ratio_error(const std::vector<Ratio>& ratios, double Ratio::*which);

}  // namespace wt
