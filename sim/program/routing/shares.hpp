// Arithmetic on shares of a layer's choices.
#pragma once
#include <vector>

namespace wt {

/// `loads`, ascending, as shares that sum to 1, none above `most`: what an expert cannot take goes to those below it,
/// where they have loads at all. `most` times their number is at least 1.
std::vector<double> capped_shares(std::vector<double> loads, double most);

}  // namespace wt
