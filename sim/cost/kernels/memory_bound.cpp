#include "sim/cost/kernels/memory_bound.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "sim/cost/fit/least_squares.hpp"
#include "sim/cost/ops/overlap.hpp"

namespace wt {
namespace {

constexpr double kConstantScale = 1.5;  // of a constant's logarithm: all but free
// A stream that overflows the cache a little loses what it reads next: full hits below, full misses above these sizes.
constexpr double kFitsBelow = 0.7, kMissesAbove = 1.2;
constexpr double kSharpness = 4;  // of the longer of two: both within a tenth add a sixth

MemoryBoundConstants constants_of(const Eigen::VectorXd& p) {
  const auto positive = [&](Eigen::Index i) { return std::exp(std::clamp(p[i], -40.0, 5.0)); };
  return {positive(0), positive(1), positive(2), positive(3)};
}

}  // namespace

double memory_bound_time_s(const RowKernel& kernel, const DataSheet& gpu, const MemoryBoundConstants& c) {
  const double missed =
      std::clamp((kernel.bytes / gpu.cache_bytes - kFitsBelow) / (kMissesAbove - kFitsBelow), 0.0, 1.0);
  const double moving = kernel.bytes / gpu.memory_Bps * ((1 - missed) / c.cache_share + missed / c.memory_share);
  const double pass = c.pass_s * kernel.width;
  return c.launch_s + overlapped_s(moving, pass, kSharpness);
}

MemoryBoundConstants typical_memory_bound() { return {2e-6, 0.5e-9, 0.8, 0.7}; }

MemoryBoundConstants fit_memory_bound(const std::vector<TimedRowKernel>& kernels, const DataSheet& gpu) {
  if (kernels.empty())
    throw_error(Code::usage, "fit of memory-bound kernels: found no measurement, allowed at least one");
  Eigen::VectorXd prior(4);
  const MemoryBoundConstants typical = typical_memory_bound();
  prior << std::log(typical.launch_s), std::log(typical.pass_s), std::log(typical.cache_share),
      std::log(typical.memory_share);
  const auto rows = static_cast<Eigen::Index>(kernels.size());
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const MemoryBoundConstants c = constants_of(p);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedRowKernel& each = kernels[static_cast<std::size_t>(i)];
      out[i] = robust(std::log(memory_bound_time_s(each.kernel, gpu, c) / each.seconds) / kResidualScale);
    }
    out.tail(prior.size()) = (p - prior) / kConstantScale;
  };
  return constants_of(least_squares(residuals, rows + prior.size(), prior));
}

}  // namespace wt
