#include "sim/fit/kernel_constants_fit.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "sim/statistics/least_squares.hpp"

namespace wt {
namespace {

constexpr double kWaveScale = 1.0;    // spread of a constant's logarithm: a factor e costs as much as one outlier row
constexpr double kMemoryScale = 1.5;  // spread of a constant's logarithm: almost free

/// Fitted parameters are unbounded: logarithms of times, shares and blend - 1, and the logit of partial_wave (in 0..1).
Eigen::VectorXd parameters_of(const WaveConstants& c) {
  Eigen::VectorXd p(static_cast<Eigen::Index>(kWaveConstants));
  p << std::log(c.launch_s), std::log(c.ramp_s), std::log(c.memory_share),
      std::log(c.partial_wave / (1 - c.partial_wave)), std::log(c.tile_share[0]), std::log(c.tile_share[1]),
      std::log(c.tile_share[2]), std::log(c.tile_share[3]), std::log(c.reduce_s), std::log(c.blend - 1);
  return p;
}

WaveConstants wave_of(const Eigen::VectorXd& p) {
  // Outside these limits a constant changes no time, and its exponential could overflow.
  const auto positive = [&](Eigen::Index i) { return std::exp(std::clamp(p[i], -30.0, 10.0)); };
  WaveConstants c;
  c.launch_s = positive(0);
  c.ramp_s = positive(1);
  c.memory_share = std::min(1.0, positive(2));
  c.partial_wave = 1 / (1 + std::exp(-std::clamp(p[3], -30.0, 30.0)));
  for (std::size_t i = 0; i < c.tile_share.size(); ++i)
    c.tile_share[i] = std::min(1.0, positive(4 + static_cast<Eigen::Index>(i)));
  c.reduce_s = positive(8);
  c.blend = 1 + std::min(20.0, positive(9));
  return c;
}

MemoryBoundConstants memory_bound_of(const Eigen::VectorXd& p) {
  const auto positive = [&](Eigen::Index i) { return std::exp(std::clamp(p[i], -40.0, 5.0)); };
  return {positive(0), positive(1), positive(2), positive(3)};
}

}  // namespace

WaveConstants fit_wave(const std::vector<TimedProduct>& products, const DataSheet& gpu, const WaveConstants& start) {
  if (products.empty()) throw_usage("fit of matrix products: found no measurement, allowed at least one");
  std::vector<CountedWaves> waves;
  waves.reserve(products.size());
  for (const TimedProduct& p : products) waves.emplace_back(p.product, gpu);
  const Eigen::VectorXd prior = parameters_of(start);
  const auto rows = static_cast<Eigen::Index>(products.size());
  const Residuals residuals = [&](const Eigen::VectorXd& parameters, Eigen::VectorXd& out) {
    const WaveConstants c = wave_of(parameters);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedProduct& p = products[static_cast<std::size_t>(i)];
      const double seconds = waves[static_cast<std::size_t>(i)].seconds(c);
      out[i] = robust(std::log(seconds / p.seconds) / kResidualScale);
    }
    out.tail(prior.size()) = (parameters - prior) / kWaveScale;
  };
  return wave_of(least_squares(residuals, rows + prior.size(), prior));
}

MemoryBoundConstants fit_memory_bound(const std::vector<TimedRowKernel>& kernels, const DataSheet& gpu) {
  if (kernels.empty()) throw_usage("fit of memory-bound kernels: found no measurement, allowed at least one");
  Eigen::VectorXd prior(4);
  const MemoryBoundConstants typical = typical_memory_bound();
  prior << std::log(typical.launch_s), std::log(typical.pass_s), std::log(typical.cache_share),
      std::log(typical.memory_share);
  const auto rows = static_cast<Eigen::Index>(kernels.size());
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const MemoryBoundConstants c = memory_bound_of(p);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedRowKernel& each = kernels[static_cast<std::size_t>(i)];
      out[i] = robust(std::log(memory_bound_time_s(each.kernel, gpu, c) / each.seconds) / kResidualScale);
    }
    out.tail(prior.size()) = (p - prior) / kMemoryScale;
  };
  return memory_bound_of(least_squares(residuals, rows + prior.size(), prior));
}

}  // namespace wt
