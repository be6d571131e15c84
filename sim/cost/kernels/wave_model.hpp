// Time of one matrix product on a GPU, from its shape: tiles of the result go over the processors in waves, a wave
// costs its tiles' FLOPs at the rate of that tile shape plus a ramp, the library takes the best of a few tile shapes
// and splits of k, and weights have to come from memory meanwhile. Ten constants a GPU, most of them fractions of the
// data sheet, so that they carry over to other GPUs; fitted on published times of cuBLAS.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "configs/files/data_sheet.hpp"

namespace wt {

struct Product {
  double m = 0, n = 0, k = 0;
  double relative_rate = 1;  ///< of the data type, see data_sheet.hpp
  double element_bytes = 2;
  double flops() const { return 2 * m * n * k; }
  double bytes() const { return element_bytes * (m * k + n * k + m * n); }
};

struct WaveConstants {
  double launch_s = 0;                 ///< of any product
  double ramp_s = 0;                   ///< of a wave: filling and draining the pipeline, writing the tile
  double memory_share = 0;             ///< of the data sheet's bandwidth
  double partial_wave = 0;             ///< 0 = a last wave costs a whole one however few tiles it has, 1 = its share
  std::array<double, 4> tile_share{};  ///< of the data sheet's FLOP/s, for tiles of 64x64, 64x128, 128x128, 128x256
  double reduce_s = 0;                 ///< adding up the parts of a split k
  double blend = 2;                    ///< power with which compute and memory overlap (overlap.hpp)
};
constexpr std::size_t kWaveConstants = 10;

/// Seconds of this product; FLOPs and bytes are never faster than the data sheet. `groups` of them in one launch: each
/// rounds up to whole tiles, the waves run over the tiles of all, and k is not split.
double wave_time_s(const Product& product, const DataSheet& gpu, const WaveConstants& constants, double groups = 1);

struct TimedProduct {
  Product product;
  double seconds = 0;
};

/// The constants with the smallest relative errors (robust, and with a wide prior around `start`, so that what these
/// products do not show stays where it was). Throws Error{usage} without products.
WaveConstants fit_wave(const std::vector<TimedProduct>& products, const DataSheet& gpu, const WaveConstants& start);

/// Where a fit begins: middle values of A100 and H100.
WaveConstants typical_wave();

}  // namespace wt
