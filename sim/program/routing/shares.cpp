#include "sim/program/routing/shares.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace wt {

std::vector<double> capped_shares(std::vector<double> loads, double most) {
  double left = 1, rest = std::accumulate(loads.begin(), loads.end(), 0.0);
  for (std::size_t e = loads.size(); e-- > 0;) {
    const double of_rest = loads[e] > 0 ? loads[e] / std::max(rest, loads[e]) : 1.0 / static_cast<double>(e + 1);
    const double share = std::min(most, of_rest * left);
    rest -= loads[e], left -= share, loads[e] = share;
  }
  return loads;
}

}  // namespace wt
