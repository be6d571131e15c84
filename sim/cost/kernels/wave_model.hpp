// Time of one matrix product on a GPU, from its shape. Tiles of the result go over the processors in waves. A wave
// costs a ramp and its tiles' FLOPs at the rate of the tile shape. The library takes the best of a few tile shapes and
// splits of k. Meanwhile, weights have to come from memory. Each GPU has ten constants, fitted on published times of
// cuBLAS. Most of them are fractions of the data sheet, so that they transfer to other GPUs.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "configs/files/data_sheet.hpp"

namespace wt {

struct Product {
  double m = 0, n = 0, k = 0;
  double relative_rate = 1;  ///< rate of the data type, see data_sheet.hpp
  double element_bytes = 2;
  double flops() const { return 2 * m * n * k; }
  double bytes() const { return element_bytes * (m * k + n * k + m * n); }
};

struct WaveConstants {
  double launch_s = 0;                 ///< for each product
  double ramp_s = 0;                   ///< for each wave: filling and draining the pipeline, writing the tile
  double memory_share = 0;             ///< reached share of the data sheet's bandwidth
  double partial_wave = 0;             ///< cost of a last wave with few tiles: 0 = a whole wave, 1 = its share
  std::array<double, 4> tile_share{};  ///< of the data sheet's FLOP/s, for tiles of 64x64, 64x128, 128x128, 128x256
  double reduce_s = 0;                 ///< adding up the parts of a split k
  double blend = 2;                    ///< power with which compute and memory overlap (overlap.hpp)
};
constexpr std::size_t kWaveConstants = 10;

/// The waves of a product in each tiling. They do not depend on the constants, so a fit counts them once.
class CountedWaves {
 public:
  CountedWaves(const Product& product, const DataSheet& gpu);
  double seconds(const WaveConstants& constants) const;

 private:
  struct Tiling {
    double whole, shared, tile_s, reduce_bytes_s;
    std::size_t share;
    bool split;
  };
  std::array<Tiling, 18> tilings_{};  ///< six tile shapes, three splits of k
  double memory_s_ = 0;
};

/// Seconds of this product, never faster than the data sheet's FLOP/s or bandwidth.
double wave_time_s(const Product& product, const DataSheet& gpu, const WaveConstants& constants);

/// Values between those of A100 and H100: the start of a fit.
WaveConstants typical_wave();

}  // namespace wt
