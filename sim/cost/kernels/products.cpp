#include "sim/cost/kernels/products.hpp"

#include <algorithm>
#include <cmath>

namespace wt {
namespace {

// Distances at which residuals of other shapes count, as differences of logarithms: a tenth in rows, because cuBLAS
// changes tiles with them; a twentieth in waves, because their rounding changes; about 1.35 and 2 times in n and k.
// Chosen on A100 and H100 together. With half or twice each, the mean error changes by less than 0.2 points.
constexpr double kReach_m = 0.1, kReach_n = 0.3, kReach_k = 0.7, kReach_waves = 0.05;
constexpr double kDoubt = 0.3;   // weight of "no correction", relative to a neighbour at distance 0
constexpr double kFarthest = 4;  // multiple of each kReach; beyond, a neighbour weighs < 4e-4

double ln_waves(const Product& p, const DataSheet& gpu) {
  return std::log(std::ceil(p.m / 128) * std::ceil(p.n / 128) / static_cast<double>(gpu.processors));
}

}  // namespace

ProductModel::ProductModel(const ProductConstants& constants, const DataSheet& gpu) : gpu_(gpu), wave_(constants.wave) {
  neighbours_.reserve(constants.residuals.size());
  for (const ProductResidual& r : constants.residuals)
    neighbours_.push_back(
        {std::log(r.m), std::log(r.n), std::log(r.k), ln_waves({r.m, r.n, r.k}, gpu), r.relative_rate, r.log_left});
}

double ProductModel::predict(const Product& product, const DataSheet& gpu, bool near) const {
  const double seconds = wave_time_s(product, gpu, wave_);
  if (!near) return seconds;
  const double ln_m = std::log(product.m), ln_n = std::log(product.n), ln_k = std::log(product.k);
  const double waves = ln_waves(product, gpu);
  const auto square = [](double x) { return x * x; };
  double weights = kDoubt, sum = 0;
  const auto first = std::ranges::lower_bound(neighbours_, ln_m - kFarthest * kReach_m, {}, &Neighbour::ln_m);
  for (auto n = first; n != neighbours_.end() && n->ln_m <= ln_m + kFarthest * kReach_m; ++n) {
    if (n->relative_rate != product.relative_rate) continue;
    const double distance = square((n->ln_m - ln_m) / kReach_m) + square((n->ln_n - ln_n) / kReach_n) +
                            square((n->ln_k - ln_k) / kReach_k) + square((n->ln_waves - waves) / kReach_waves);
    const double weight = std::exp(-0.5 * distance);
    weights += weight;
    sum += weight * n->log_left;
  }
  return seconds * std::exp(sum / weights);
}

}  // namespace wt
