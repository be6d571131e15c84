#include "planner/cli/report/run_thinned.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"

namespace wt {

ThinnedSteps::ThinnedSteps(std::int64_t first, std::int64_t last, std::int64_t points)
    : first_(first), each_(std::max<std::int64_t>(1, ceil_div(last - first + 1, points))) {
  for (std::int64_t begin = first; begin <= last; begin += each_)
    x_.push_back(static_cast<double>(std::min(begin + each_ - 1, last)));
}

ThinnedSteps::Band ThinnedSteps::band(const std::vector<StepLine>& lines,
                                      const std::function<double(const StepLine&)>& figure) const {
  std::vector<std::vector<double>> of_point(x_.size());
  for (const StepLine& line : lines)
    if (const double value = figure(line); std::isfinite(value))
      of_point.at(static_cast<std::size_t>((line.step - first_) / each_)).push_back(value);
  Band out;
  for (const auto& values : of_point) {
    const bool none = values.empty();
    out.empty = out.empty && none;
    out.median.push_back(none ? StepLine::kNothing : median(values));
    out.low.push_back(none ? StepLine::kNothing : *std::ranges::min_element(values));
    out.high.push_back(none ? StepLine::kNothing : *std::ranges::max_element(values));
  }
  return out;
}

}  // namespace wt
