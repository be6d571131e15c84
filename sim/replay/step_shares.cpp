#include "sim/replay/step_shares.hpp"

#include <algorithm>

namespace wt {

StepShares step_shares(const std::vector<OpClassTotal>& totals, double step_s) {
  double computing_s = 0;
  for (const OpClassTotal& total : totals)
    if (total.lane == Lane::compute && total.action != Action::share_tensor) computing_s += total.busy_s;
  const double computing = std::clamp(computing_s / step_s, 0.0, 1.0);
  return {computing, 1 - computing};
}

}  // namespace wt
