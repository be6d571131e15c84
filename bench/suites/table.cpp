#include "bench/suites/table.hpp"

#include <algorithm>

#include "configs/spec/error.hpp"
#include "configs/spec/quantity.hpp"

namespace wt {
namespace {

double counter(const Measurement& m, const std::string& key) {
  const auto found = m.counters.find(key);
  return found == m.counters.end() ? 0 : found->second;
}

std::string rate(const Measurement& m) {
  const double seconds = m.median();
  if (!(seconds > 0)) return "";
  if (m.kernel == "gemm" || m.kernel.starts_with("grouped_gemm") || m.kernel == "attention")
    return fmt::format("{:.1f} GFLOP/s", counter(m, "flops") / seconds / 1e9);
  const auto size = m.shape.find("bytes");
  const double bytes = size == m.shape.end() ? counter(m, "bytes") : static_cast<double>(size->second);
  return fmt::format("{:.2f} GB/s", bytes / seconds / 1e9);
}

}  // namespace

std::string bench_table(const Profile& profile) {
  std::size_t width = 4;
  for (const Measurement& m : profile.measurements) width = std::max(width, m.name().size());
  std::string out = fmt::format("{:<{}}  {:>9}  {:>7}  {:>16}\n", "name", width, "median", "spread", "rate");
  for (const Measurement& m : profile.measurements) {
    std::vector<double> sorted = m.samples;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[sorted.size() / 10], high = sorted[sorted.size() - 1 - sorted.size() / 10];
    const double spread = m.median() > 0 ? 50 * (high - low) / m.median() : 0;
    out += fmt::format("{:<{}}  {:>9}  {:>5.1f} %  {:>16}\n", m.name(), width, format_seconds(m.median()), spread,
                       rate(m));
  }
  return out;
}

}  // namespace wt
