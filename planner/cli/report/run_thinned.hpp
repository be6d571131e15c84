// A figure of many steps as few points that hide nothing: each stands for equally many steps by their median, and a
// band from the least to the largest of them.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/run_folder/run_history.hpp"

namespace wt {

class ThinnedSteps {
 public:
  /// For steps `first` to `last`, in at most `points` points.
  ThinnedSteps(std::int64_t first, std::int64_t last, std::int64_t points);

  std::int64_t steps_each() const { return each_; }    ///< of a point; the last one may have fewer
  const std::vector<double>& x() const { return x_; }  ///< the last step of each point

  struct Band {
    std::vector<double> median, low, high;  ///< one a point; NaN: no step of it has the figure
    bool empty = true;                      ///< no step has it
  };
  Band band(const std::vector<StepLine>& lines, const std::function<double(const StepLine&)>& figure) const;

 private:
  std::int64_t first_, each_;
  std::vector<double> x_;
};

}  // namespace wt
