// Fits the constants of kernel times (sim/cost/kernels/kernel_constants.hpp) to published measurements, to all or
// without the group of points that is judged.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/cost/kernels/kernel_times.hpp"
#include "sim/fit/grouped_fit.hpp"
#include "sim/fit/kernel_points.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

class PublishedKernelFit {
 public:
  /// Fits the products of every GPU that has enough of them. Takes a second for thousands of points.
  explicit PublishedKernelFit(std::vector<KernelPoint> points);

  KernelConstants constants() const { return constants_without("", errors_.bounds()); }
  /// Times as if the group (KernelPoint::group) had not been measured, intervals included.
  const KernelTimes& without(const std::string& group) const;
  /// Time of a grouped product as if those that `out` groups with it had not been measured. The interval never has
  /// errors of its own origin.
  KernelTimes::Answer grouped_time(const KernelPoint& product, GroupedOut out) const;

 private:
  /// Products of one GPU. Their groups are distributed over kFolds folds. Each fold has constants that were fitted to
  /// the other folds, so that leaving out a group needs no fit. The last entry is fitted to all products.
  struct Products {
    DataSheet gpu;
    std::vector<const KernelPoint*> points;  ///< by m
    std::vector<std::string> groups;         ///< sorted
    std::vector<WaveConstants> folds;
    std::size_t fold_of(const std::string& group) const;
  };
  static constexpr std::size_t kFolds = 10;

  void fit_products(std::vector<const KernelPoint*> points);
  KernelConstants constants_without(const std::string& group, ErrorBounds bounds) const;
  void add_rows(const std::string& without, KernelConstants& out) const;
  void add_grouped_errors();
  /// Intervals without the errors of a group or an origin.
  const ErrorBounds& bounds_without(const std::string& group) const;

  std::vector<KernelPoint> points_;
  GroupedFit grouped_;
  std::vector<Products> products_;
  std::set<std::string> groups_;
  std::vector<PointCount> counts_;
  LeftOutErrors errors_;
  mutable std::map<std::array<std::string, 3>, MemoryBoundConstants> row_fits_;  ///< by GPU, op and group left out
  mutable std::map<std::string, KernelTimes> without_;
  mutable std::map<std::string, ErrorBounds> bounds_;
};

}  // namespace wt
