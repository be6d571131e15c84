#include "sim/replay/pool_sum.hpp"

#include <algorithm>

namespace wt {

PoolLoad PoolSum::take() {
  std::ranges::sort(touched_);
  PoolLoad load;
  load.pools.reserve(touched_.size());
  load.amounts.reserve(touched_.size());
  for (const int pool : touched_) {
    double& sum = amounts_[static_cast<std::size_t>(pool)];
    if (sum > 0) {
      load.pools.push_back(pool);
      load.amounts.push_back(sum);
    }
    sum = 0;
  }
  touched_.clear();
  return load;
}

}  // namespace wt
