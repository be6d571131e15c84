#include "sim/cost/memory/memory_forecast.hpp"

#include <boost/math/distributions/normal.hpp>
#include <cmath>

namespace wt {
namespace {

const boost::math::normal kStandard;
const double kEnd = boost::math::quantile(kStandard, 0.9);  // of the interval, in standard deviations

}  // namespace

double MemoryForecast::quantile(double probability) const {
  const double z = boost::math::quantile(kStandard, probability);
  return bytes + z / kEnd * (z < 0 ? bytes - low : high - bytes);
}

double MemoryForecast::exceeds(double limit) const {
  const double width = limit < bytes ? bytes - low : high - bytes;
  if (!(width > 0)) return limit < bytes ? 1 : 0;
  return cdf(complement(kStandard, kEnd * (limit - bytes) / width));
}

MemoryForecast as_live(const LiveMemory& live) {
  return {live.peak(), live.peak(), live.peak(), only(Evidence::derived)};
}

MemoryForecast together(const MemoryForecast& a, const MemoryForecast& b) {
  MemoryForecast out;
  out.bytes = a.bytes + b.bytes;
  out.low = out.bytes - std::hypot(a.bytes - a.low, b.bytes - b.low);
  out.high = out.bytes + std::hypot(a.high - a.bytes, b.high - b.bytes);
  if (out.bytes > 0)
    for (std::size_t i = 0; i < out.evidence.size(); ++i)
      out.evidence[i] = (a.evidence[i] * a.bytes + b.evidence[i] * b.bytes) / out.bytes;
  return out;
}

}  // namespace wt
