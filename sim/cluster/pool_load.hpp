// What a piece of work puts on pools.
#pragma once
#include <vector>

namespace wt {

/// Amounts on pools; the unit is that of the pools. No pool twice.
struct PoolLoad {
  std::vector<int> pools;
  std::vector<double> amounts;
};

}  // namespace wt
