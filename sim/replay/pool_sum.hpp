// Adds up amounts on pools of which there are tens of thousands, a few at a time.
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
  std::vector<double> amounts_;  ///< by pool; 0 of those that are not touched
  std::vector<int> touched_;     ///< one may stand there twice
};

}  // namespace wt
