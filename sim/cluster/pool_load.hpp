// What a transfer or computation takes of pools.
#pragma once
#include <vector>

namespace wt {

/// Amounts on distinct pools, in each pool's unit.
struct PoolLoad {
  std::vector<int> pools;
  std::vector<double> amounts;
};

}  // namespace wt
