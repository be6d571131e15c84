// Ratios of a GPU's measured kernel times to published times of its kind, by class of kernel. Kernels that were not
// measured here take published times multiplied by the ratio, so that a few points correct all shapes.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "sim/cost/kernels/item_times.hpp"
#include "sim/cost/kernels/machine_data.hpp"

namespace wt {

/// Measured over published: the median, and the 10th and 90th percentile divided by the median.
struct OwnRatio {
  double median = 1, low = 1, high = 1;
};

class OwnRatios {
 public:
  OwnRatios() = default;
  OwnRatios(const MachineData& measured, const ItemTimes& published, const KernelChoice& choice, const DataSheet& gpu);
  /// The ratio of the item's class. A backward pass that was not measured has that of its forward pass. Empty if
  /// neither was measured.
  std::optional<OwnRatio> of(const WorkItem& item) const;

 private:
  std::map<ClassKey, OwnRatio> by_class_;
};

}  // namespace wt
