#include "configs/spec/support/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

void need_values(const char* what, const std::vector<double>& values) {
  if (values.empty()) throw_error(Code::usage, "{}: found no value, allowed at least one; measure again", what);
}

std::size_t trimmed_away(const std::vector<double>& values, double share) {
  return values.size() < 5 ? 0 : static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
}

}  // namespace

double mean(const std::vector<double>& values) {
  need_values("mean", values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double q) {
  need_values("quantile", values);
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double median_absolute_deviation(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return 1.4826 * median(std::move(distances));
}

std::pair<double, double> trimmed_range(std::vector<double> values, double share) {
  need_values("trimmed range", values);
  const std::size_t away = trimmed_away(values, share);
  std::sort(values.begin(), values.end());
  return {values[away], values[values.size() - 1 - away]};
}

double trimmed_mean(std::vector<double> values, double share) {
  need_values("trimmed mean", values);
  const auto away = static_cast<std::ptrdiff_t>(trimmed_away(values, share));
  std::sort(values.begin(), values.end());
  return std::accumulate(values.begin() + away, values.end() - away, 0.0) /
         static_cast<double>(std::ssize(values) - 2 * away);
}

}  // namespace wt
