#include "configs/base/trend.hpp"

#include "configs/base/statistics.hpp"

namespace wt {

double deviation_from_trend(std::vector<double> values) {
  if (values.size() < 2) return 0;
  const auto half = std::ssize(values) / 2;
  const double rise = median({values.end() - half, values.end()}) - median({values.begin(), values.begin() + half});
  const double slope = rise / static_cast<double>(std::ssize(values) - half);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= slope * static_cast<double>(i);
  return median_absolute_deviation(values);
}

}  // namespace wt
