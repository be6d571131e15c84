// Arithmetic on shares of a layer's choices.
#pragma once
#include <vector>

namespace wt {

/// Ascending `loads` as shares that sum to 1, none above `most`. The excess of an expert goes to those with smaller
/// loads, unless these are 0. `most` times the number of experts must be at least 1.
std::vector<double> capped_shares(std::vector<double> loads, double most);

}  // namespace wt
