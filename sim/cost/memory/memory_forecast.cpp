#include "sim/cost/memory/memory_forecast.hpp"

#include <cmath>

namespace wt {
namespace {

/// Student's t with two degrees of freedom, which has closed forms.
double t_quantile(double probability) { return (2 * probability - 1) / std::sqrt(2 * probability * (1 - probability)); }
double t_above(double t) { return 0.5 - 0.5 * t / std::sqrt(2 + t * t); }

constexpr double kEnd = 0.9;  // the upper end of an 80 % interval

}  // namespace

double MemoryForecast::quantile(double probability) const {
  const double t = t_quantile(probability);
  return bytes + t / t_quantile(kEnd) * (t < 0 ? bytes - low : high - bytes);
}

double MemoryForecast::exceeds(double limit) const {
  const double width = limit < bytes ? bytes - low : high - bytes;
  if (!(width > 0)) return limit < bytes ? 1 : 0;
  return t_above(t_quantile(kEnd) * (limit - bytes) / width);
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
