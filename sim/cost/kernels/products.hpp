// Times of matrix products on one GPU: the wave model, corrected by its residuals at similar shapes.
#pragma once
#include <vector>

#include "sim/cost/kernels/kernel_constants.hpp"

namespace wt {

class ProductModel {
 public:
  /// `gpu`: the GPU of the constants.
  ProductModel(const ProductConstants& constants, const DataSheet& gpu);

  const DataSheet& gpu() const { return gpu_; }
  /// Seconds on `gpu`, whose data sheet scales the constants. `near`: correct by residuals at similar shapes. Use it
  /// only for GPUs with the same number of processors.
  double predict(const Product& product, const DataSheet& gpu, bool near) const;

 private:
  struct Neighbour {
    double ln_m, ln_n, ln_k, ln_waves, relative_rate, log_left;
  };

  DataSheet gpu_;
  WaveConstants wave_;
  std::vector<Neighbour> neighbours_;  ///< sorted by ln_m
};

}  // namespace wt
