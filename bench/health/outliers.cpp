#include "bench/health/outliers.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"

namespace wt {

double robust_spread(const std::vector<double>& values) {
  const std::size_t n = values.size();
  if (n < 2) return 0;
  constexpr std::array<double, 8> kSmall = {1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};  // 2 to 9 values
  const double correction = n < 10 ? kSmall[n - 2] : static_cast<double>(n) / (static_cast<double>(n) - 0.8);
  return correction * median_absolute_deviation(values);
}

std::vector<Deviation> deviations(const std::vector<double>& times, double usual_spread) {
  std::vector<Deviation> out(times.size());
  if (times.empty()) return out;
  std::vector<double> logs;
  logs.reserve(times.size());
  for (double time : times) {
    if (!(time > 0) || !std::isfinite(time))
      throw_usage("deviations: found a time of {}, allowed above 0; measure again", time);
    logs.push_back(std::log(time));
  }
  const double middle = median(logs), n = static_cast<double>(times.size());
  const auto moderated = [&](double variance, double degrees) {
    return (degrees * variance + kUsualSpreadWeight * usual_spread * usual_spread) / (degrees + kUsualSpreadWeight);
  };
  const double rough = robust_spread(logs),
               limit = 4 * std::sqrt(moderated(rough * rough, 0.37 * (n - 1)));  // 0.37 = efficiency of the MAD
  double squares = 0, kept = 0;
  for (double x : logs)
    if (std::abs(x - middle) <= limit) squares += (x - middle) * (x - middle), ++kept;
  for (std::size_t i = 0; i < times.size(); ++i) {
    out[i].slowdown = std::exp(logs[i] - middle) - 1;
    if (times.size() < 3) continue;
    const double distance = logs[i] - middle, own = std::abs(distance) <= limit ? 1 : 0;
    const double degrees = std::max(0.0, kept - own - 1);
    const double variance =
        moderated(degrees > 0 ? std::max(0.0, squares - own * distance * distance) / degrees : 0, degrees);
    // The median's own uncertainty is pi / (2 n) of the variance.
    const boost::math::students_t student(degrees + kUsualSpreadWeight);
    out[i].p = boost::math::cdf(boost::math::complement(student, distance / std::sqrt(variance * (1 + 1.5708 / n))));
  }
  return out;
}

}  // namespace wt
