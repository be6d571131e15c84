#include "sim/program/build/schedule.hpp"

#include <algorithm>

namespace wt {

std::vector<StageWork> stage_schedule(const Layout& layout, std::int64_t stage, std::int64_t microbatches) {
  const int p = static_cast<int>(layout.pipeline), v = static_cast<int>(layout.virtual_stages),
            s = static_cast<int>(stage);
  const int passes = static_cast<int>(microbatches) * v;
  const bool split = layout.schedule == Schedule::zero_bubble;
  const int warm_up = std::min(passes, (p - s - 1) * (v > 1 ? 2 : 1) + (v - 1) * p + (layout.exchange_overlap ? 1 : 0));
  using Pass = StageWork::Pass;
  std::vector<StageWork> out;
  const auto add = [&](Pass pass,
                       int k) {  // p microbatches through each chunk in turn; with one chunk k is the microbatch
    const int chunk = k % (p * v) / p;
    out.push_back({pass, v == 1 ? k : k / (p * v) * p + k % p, false,
                   v == 1                  ? 0
                   : pass == Pass::forward ? chunk
                                           : v - 1 - chunk});
  };
  for (int k = 0; k < warm_up; ++k) add(Pass::forward, k);
  for (int k = 0; k < passes; ++k) {
    if (warm_up + k < passes) {
      add(Pass::forward, warm_up + k);
      out.back().overlapped = layout.exchange_overlap;
    }
    add(Pass::backward, k);
    if (split && k >= s) add(Pass::weights, k - s);
  }
  if (split)
    for (int k = std::max(0, passes - s); k < passes; ++k) add(Pass::weights, k);
  return out;
}

}  // namespace wt
