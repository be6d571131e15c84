#include "bench/formats/rate.hpp"

#include <fmt/core.h>

#include "configs/base/lookup.hpp"
#include "configs/base/statistics.hpp"

namespace wt {

std::optional<Rate> rate(const Measurement& m) {
  const double seconds = m.median();
  if (m.unit != "s" || !(seconds > 0)) return std::nullopt;
  const auto counter = [&](const char* key) { return value_or(m.counters, key); };
  const auto size_of = [&](const char* key) { return static_cast<double>(value_or(m.shape, key)); };
  const bool product = m.kernel == "gemm" || m.kernel.starts_with("gemm_") || m.kernel.starts_with("grouped_gemm") ||
                       m.kernel == "attention";
  double work = product ? counter("flops") : counter("bytes") > 0 ? counter("bytes") : size_of("bytes");
  if (m.kernel == "gemm" && work == 0)
    work = 2 * size_of("rows") * size_of("n") * size_of("k");  // published times have no FLOP counter
  if (!(work > 0)) return std::nullopt;
  // The aims of our own kernels count what moves, and no operations.
  const bool estimated = (m.kernel == "cross_entropy" || m.kernel == "permute") && counter("flops") > 0;
  return Rate{work / seconds, product ? "FLOP/s" : "B/s", estimated};
}

std::string to_string(const Rate& rate) {
  return rate.unit == "FLOP/s" ? fmt::format("{:.1f} GFLOP/s", rate.value / 1e9)
                               : fmt::format("{:.2f} GB/s{}", rate.value / 1e9, rate.estimated ? " est." : "");
}

double spread(const Measurement& m) {
  if (!(m.median() > 0)) return 0;
  const auto [least, most] = trimmed_range(m.samples, 0.1);
  return 0.5 * (most - least) / m.median();
}

}  // namespace wt
