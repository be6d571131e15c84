// Values that a rehearsal uses instead of other ranks' weights. They are drawn like initial weights, so that
// activations keep their scale, nothing underflows, and a GPU's power draw is realistic.
#pragma once
#include <vector>

#include "trainer/parameters/weights.hpp"

namespace wt {

class PlausibleWeights {
 public:
  explicit PlausibleWeights(std::uint64_t seed);
  /// Fills `full` (padded,) except this rank's own slice. Costs a few cycles per element, and no tensor memory.
  void fill(at::Tensor& full, const GroupLayout& layout);

 private:
  void fill(at::Tensor& full, std::int64_t begin, std::int64_t end, double std);

  std::vector<float> normal_;  ///< standard normal, reused cyclically
};

}  // namespace wt
