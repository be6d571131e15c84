#include "sim/cost/kernels/wave_model.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "configs/base/error.hpp"
#include "sim/cost/fit/least_squares.hpp"
#include "sim/cost/ops/overlap.hpp"

namespace wt {
namespace {

struct Tile {
  double rows, columns;
  std::size_t share;  ///< index into WaveConstants::tile_share
};
// The shapes that cuBLAS and CUTLASS ship for tensor cores, both ways round.
constexpr std::array<Tile, 6> kTiles = {
    {{64, 64, 0}, {64, 128, 1}, {128, 64, 1}, {128, 128, 2}, {128, 256, 3}, {256, 128, 3}}};
constexpr std::array<double, 3> kSplits = {1, 2, 4};  // of k, where tiles alone do not fill the processors

constexpr double kPriorScale = 1.0;  // of a constant's logarithm: a factor e either way costs one row's outlier

/// Waves of one tiling of one product: independent of the constants, so counted once a fit.
struct Tiling {
  double whole, shared, tile_s, reduce_bytes_s;
  std::size_t share;
  bool split;
};
using Tilings = std::array<Tiling, kTiles.size() * kSplits.size()>;

Tilings tilings(const Product& p, const DataSheet& gpu, double groups = 1) {
  Tilings out{};
  const auto processors = static_cast<double>(gpu.processors);
  const double processor_flops = gpu.flops * p.relative_rate / processors;
  std::size_t at = 0;
  for (const Tile& tile : kTiles)
    for (const double split : kSplits) {
      const double parts = groups > 1 ? 1 : split;
      const double tiles = groups * std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns) * parts / processors;
      out[at++] = {std::ceil(tiles), std::max(1.0, tiles),
                   2 * tile.rows * tile.columns * (p.k / parts) / processor_flops,
                   // Each part is written and read once more, in fp32.
                   parts > 1 ? 8 * p.m * p.n * parts / gpu.memory_Bps : 0, tile.share, parts > 1};
    }
  return out;
}

double seconds_of(const Tilings& tilings, double memory_s, const WaveConstants& c) {
  double compute = std::numeric_limits<double>::infinity();
  for (const Tiling& t : tilings) {
    const double waves = (1 - c.partial_wave) * t.whole + c.partial_wave * t.shared;
    const double reduce = t.split ? c.reduce_s + t.reduce_bytes_s : 0;
    compute = std::min(compute, waves * (t.tile_s / c.tile_share[t.share] + c.ramp_s) + reduce);
  }
  return c.launch_s + overlapped_s(compute, memory_s / c.memory_share, c.blend);
}

/// Times and shares are positive: their logarithms are fitted; partial_wave lies in 0..1: its logit; blend - 1 > 0.
Eigen::VectorXd parameters_of(const WaveConstants& c) {
  Eigen::VectorXd p(static_cast<Eigen::Index>(kWaveConstants));
  p << std::log(c.launch_s), std::log(c.ramp_s), std::log(c.memory_share),
      std::log(c.partial_wave / (1 - c.partial_wave)), std::log(c.tile_share[0]), std::log(c.tile_share[1]),
      std::log(c.tile_share[2]), std::log(c.tile_share[3]), std::log(c.reduce_s), std::log(c.blend - 1);
  return p;
}

WaveConstants constants_of(const Eigen::VectorXd& p) {
  // Beyond these a constant no longer changes any time, and its exponential would only overflow.
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

}  // namespace

WaveConstants typical_wave() { return {3e-6, 1e-6, 0.87, 0.7, {0.5, 0.62, 0.68, 0.75}, 1e-6, 2.5}; }

double wave_time_s(const Product& product, const DataSheet& gpu, const WaveConstants& constants, double groups) {
  return seconds_of(tilings(product, gpu, groups), groups * product.bytes() / gpu.memory_Bps, constants);
}

WaveConstants fit_wave(const std::vector<TimedProduct>& products, const DataSheet& gpu, const WaveConstants& start) {
  if (products.empty()) throw_error(Code::usage, "fit of matrix products: found no measurement, allowed at least one");
  std::vector<Tilings> waves;
  waves.reserve(products.size());
  for (const TimedProduct& p : products) waves.push_back(tilings(p.product, gpu));
  const Eigen::VectorXd prior = parameters_of(start);
  const auto rows = static_cast<Eigen::Index>(products.size());
  const Residuals residuals = [&](const Eigen::VectorXd& parameters, Eigen::VectorXd& out) {
    const WaveConstants c = constants_of(parameters);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedProduct& p = products[static_cast<std::size_t>(i)];
      const double seconds = seconds_of(waves[static_cast<std::size_t>(i)], p.product.bytes() / gpu.memory_Bps, c);
      out[i] = robust(std::log(seconds / p.seconds) / kResidualScale);
    }
    out.tail(prior.size()) = (parameters - prior) / kPriorScale;
  };
  return constants_of(least_squares(residuals, rows + prior.size(), prior));
}

}  // namespace wt
