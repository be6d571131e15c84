#include "sim/cost/memory/memory_forecast.hpp"

#include <cmath>

namespace wt {

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
