// Reduces a figure over many steps to few points without hiding outliers: each point is the median of equally many
// steps, with a band from their minimum to their maximum.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/run_folder/run_history.hpp"

namespace wt {

class ThinnedSteps {
 public:
  /// Steps `first` to `last`, in at most `points` points.
  ThinnedSteps(std::int64_t first, std::int64_t last, std::int64_t points);

  std::int64_t steps_each() const { return each_; }    ///< steps of a point; the last one may have fewer
  const std::vector<double>& x() const { return x_; }  ///< the last step of each point

  struct Band {
    std::vector<double> median, low, high;  ///< one per point; NaN: none of its steps has the figure
    bool empty = true;                      ///< no step has the figure
  };
  Band band(const std::vector<StepLine>& lines, const std::function<double(const StepLine&)>& figure) const;

 private:
  std::int64_t first_, each_;
  std::vector<double> x_;
};

}  // namespace wt
