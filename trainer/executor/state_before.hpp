// A rank's training state as it was before its newest step changed it, so that a step which not all ranks have done can
// be taken back. Costs a copy of masters and moments on their device: 12 bytes a parameter of the rank's part, and the
// time of copying them once a step.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/parameters/weights.hpp"

namespace wt {

class StateBefore {
 public:
  /// Before the first change that `step` makes; its later changes call it in vain.
  void keep(std::int64_t step, const std::vector<ShardedGroup>& groups);
  /// Makes the groups what they were after `done` steps: takes step done + 1 back where it has begun to change them.
  void restore(std::int64_t done, std::vector<ShardedGroup>& groups);

 private:
  std::int64_t step_ = 0;  ///< 0 = none
  std::vector<at::Tensor> kept_;
};

}  // namespace wt
