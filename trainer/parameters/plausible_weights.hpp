// What a rehearsal puts where other ranks' weights would be: values drawn as the initial weights are, so that
// activations keep their scale, nothing underflows, and a GPU's power draw is that of real numbers.
#pragma once
#include <vector>

#include "trainer/parameters/weights.hpp"

namespace wt {

class PlausibleWeights {
 public:
  explicit PlausibleWeights(std::uint64_t seed);
  /// Fills `full` (padded,) everywhere but in this rank's own slice. A few cycles an element, and no tensor memory.
  void fill(at::Tensor& full, const GroupLayout& layout);

 private:
  void fill(at::Tensor& full, std::int64_t begin, std::int64_t end, double std);

  std::vector<float> normal_;  ///< standard normal, reused cyclically
};

}  // namespace wt
