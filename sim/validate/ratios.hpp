// How much longer one alternative takes than another. A choice between them rests on this ratio, and errors that both
// share cancel in it.
#pragma once
#include <string>
#include <vector>

#include "sim/validate/judged.hpp"

namespace wt {

/// Two rows of one choice: values of the one measured slower over those of the other.
struct Ratio {
  std::string choice, slower, faster;  ///< Judged::choice and alternative
  double measured = 0, predicted = 0, baseline = 0;
};

/// Every pair of rows of one choice that both have a prediction and a baseline, in the order of rows.
std::vector<Ratio> ratios(const std::vector<Judged>& rows);

/// Mean and maximum of |predicted / measured - 1|.
struct RatioError {
  double mean = 0, largest = 0;
};
/// `which` = &Ratio::predicted or &Ratio::baseline. Throws Error{usage} if `ratios` is empty.
RatioError ratio_error(const std::vector<Ratio>& ratios, double Ratio::*which);

}  // namespace wt
