#include "sim/cost/kernels/wave_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

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
constexpr std::array<double, 3> kSplits = {1, 2, 4};  // splits of k, if tiles alone do not fill the processors

}  // namespace

CountedWaves::CountedWaves(const Product& p, const DataSheet& gpu) : memory_s_(p.bytes() / gpu.memory_Bps) {
  static_assert(kTiles.size() * kSplits.size() == std::tuple_size_v<decltype(tilings_)>);
  const auto processors = static_cast<double>(gpu.processors);
  const double processor_flops = gpu.flops * p.relative_rate / processors;
  std::size_t at = 0;
  for (const Tile& tile : kTiles)
    for (const double parts : kSplits) {
      const double tiles = std::ceil(p.m / tile.rows) * std::ceil(p.n / tile.columns) * parts / processors;
      tilings_[at++] = {std::ceil(tiles), std::max(1.0, tiles),
                        2 * tile.rows * tile.columns * (p.k / parts) / processor_flops,
                        // Each part is written and read once more, in fp32.
                        parts > 1 ? 8 * p.m * p.n * parts / gpu.memory_Bps : 0, tile.share, parts > 1};
    }
}

double CountedWaves::seconds(const WaveConstants& c) const {
  double compute = std::numeric_limits<double>::infinity();
  for (const Tiling& t : tilings_) {
    const double waves = (1 - c.partial_wave) * t.whole + c.partial_wave * t.shared;
    const double reduce = t.split ? c.reduce_s + t.reduce_bytes_s : 0;
    compute = std::min(compute, waves * (t.tile_s / c.tile_share[t.share] + c.ramp_s) + reduce);
  }
  return c.launch_s + overlapped_s(compute, memory_s_ / c.memory_share, c.blend);
}

WaveConstants typical_wave() { return {3e-6, 1e-6, 0.87, 0.7, {0.5, 0.62, 0.68, 0.75}, 1e-6, 2.5}; }

double wave_time_s(const Product& product, const DataSheet& gpu, const WaveConstants& constants) {
  return CountedWaves(product, gpu).seconds(constants);
}

}  // namespace wt
