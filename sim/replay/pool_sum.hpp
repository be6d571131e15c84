// Sums amounts on tens of thousands of pools, a few at a time.
#pragma once
#include <vector>

#include "sim/cluster/engine.hpp"

namespace wt {

class PoolSum {
 public:
  explicit PoolSum(std::size_t pools = 0) : amounts_(pools, 0.0) {}

  void add(int pool, double amount) {
    double& sum = amounts_[static_cast<std::size_t>(pool)];
    if (sum == 0) touched_.push_back(pool);
    sum += amount;
  }
  /// The amounts above 0 since the last call, pools ascending.
  PoolLoad take();

 private:
  std::vector<double> amounts_;  ///< by pool; 0 for untouched ones
  std::vector<int> touched_;     ///< a pool may occur twice
};

}  // namespace wt
