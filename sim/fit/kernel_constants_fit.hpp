// The constants of single kernels by the smallest relative errors: robust, and with wide priors, so that what these
// kernels do not show stays where it was.
#pragma once
#include <vector>

#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/wave_model.hpp"

namespace wt {

struct TimedProduct {
  Product product;
  double seconds = 0;
};

/// The prior is around `start`. Throws Error{usage} without products.
WaveConstants fit_wave(const std::vector<TimedProduct>& products, const DataSheet& gpu, const WaveConstants& start);

struct TimedRowKernel {
  RowKernel kernel;
  double seconds = 0;
};

/// Throws Error{usage} without kernels.
MemoryBoundConstants fit_memory_bound(const std::vector<TimedRowKernel>& kernels, const DataSheet& gpu);

}  // namespace wt
