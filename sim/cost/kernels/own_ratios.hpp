// How far a GPU's own kernels are from published times of its kind: measured over published, by class of kernel. What
// was not measured here takes published times, multiplied by this, so that a few points correct all shapes.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "sim/cost/kernels/item_times.hpp"
#include "sim/cost/kernels/machine_data.hpp"

namespace wt {

/// Measured over published: the median, and the 10th and 90th percentile over it.
struct OwnRatio {
  double median = 1, low = 1, high = 1;
};

class OwnRatios {
 public:
  OwnRatios() = default;
  OwnRatios(const MachineData& measured, const ItemTimes& published, const KernelChoice& choice, const DataSheet& gpu);
  /// Of the item's class; of a backward pass that was not measured its forward one's. Empty where neither was.
  std::optional<OwnRatio> of(const WorkItem& item) const;

 private:
  std::map<ClassKey, OwnRatio> by_class_;
};

}  // namespace wt
