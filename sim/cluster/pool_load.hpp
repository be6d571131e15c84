// The load of a transfer or computation on pools.
#pragma once
#include <vector>

namespace wt {

/// Amounts on distinct pools, in each pool's unit.
struct PoolLoad {
  std::vector<int> pools;
  std::vector<double> amounts;
};

}  // namespace wt
