// Fits the constants of grouped products (sim/cost/kernels/grouped_products.hpp) to measurements: non-negative least
// squares of the relative error, in turns with a factor for each library. Every group of measurements can be left out.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/fit/kernel_points.hpp"

namespace wt {

/// Measurements that a fit of grouped products does without.
enum class GroupedOut {
  nothing,
  shape,    ///< those of the same (n, k), on any GPU
  library,  ///< those of the same library
  origin    ///< those of the same publisher
};

/// Constants of these products. Fewer than kFewestGroupedRows, or rows that give FLOPs no time, say nothing: the
/// typical constants.
GroupedConstants fit_grouped(const std::vector<KernelPoint>& products);
constexpr std::size_t kFewestGroupedRows = 12;

class GroupedFit {
 public:
  /// Takes the grouped products among `points`.
  explicit GroupedFit(const std::vector<KernelPoint>& points);

  const std::vector<KernelPoint>& points() const { return points_; }
  /// The constants without the measurements that have the same shape, library or origin as `like`. Each is fitted once.
  const GroupedConstants& without(GroupedOut out, const KernelPoint& like) const;
  const GroupedConstants& constants() const { return without(GroupedOut::nothing, {}); }

 private:
  std::vector<KernelPoint> points_;
  mutable std::map<std::pair<GroupedOut, std::string>, GroupedConstants> fits_;
};

}  // namespace wt
