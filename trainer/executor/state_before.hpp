// A rank's training state before its newest step, so that a step that not all ranks have completed can be undone. Costs
// a copy of masters and moments on their device (12 bytes per parameter of the rank's part), and the time of copying
// them once a step.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/parameters/weights.hpp"

namespace wt {

class StateBefore {
 public:
  /// Call before every change in `step`; only the first call of a step copies.
  void keep(std::int64_t step, const std::vector<ShardedGroup>& groups);
  /// Restores the state after `done` steps: undoes step done + 1 if it has begun to change the groups.
  void restore(std::int64_t done, std::vector<ShardedGroup>& groups);

 private:
  std::int64_t step_ = 0;  ///< 0 = none
  std::vector<at::Tensor> kept_;
};

}  // namespace wt
