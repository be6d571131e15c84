// Times of matrix products on one GPU: the wave model, corrected by what it leaves over at similar shapes.
#pragma once
#include <vector>

#include "sim/cost/kernels/kernel_constants.hpp"

namespace wt {

class ProductModel {
 public:
  /// The constants are of this GPU.
  ProductModel(const ProductConstants& constants, const DataSheet& gpu);

  const DataSheet& gpu() const { return gpu_; }
  /// Seconds on `gpu`, whose data sheet scales the constants. `near`: corrected by what they leave over at similar
  /// shapes, which says something only of GPUs with as many processors.
  double predict(const Product& product, const DataSheet& gpu, bool near) const;

 private:
  struct Neighbour {
    double ln_m, ln_n, ln_k, ln_waves, relative_rate, log_left;
  };

  DataSheet gpu_;
  WaveConstants wave_;
  std::vector<Neighbour> neighbours_;  ///< by ln_m
};

}  // namespace wt
