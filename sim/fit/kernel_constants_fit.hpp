// Fits the constants of single kernels with the smallest relative errors. Residuals are robust. Priors are wide: a
// constant on which these kernels do not depend keeps its start.
#pragma once
#include <vector>

#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/wave_model.hpp"

namespace wt {

struct TimedProduct {
  Product product;
  double seconds = 0;
};

/// The prior is around `start`. Throws Error{usage} if there are no products.
WaveConstants fit_wave(const std::vector<TimedProduct>& products, const DataSheet& gpu, const WaveConstants& start);

struct TimedRowKernel {
  RowKernel kernel;
  double seconds = 0;
};

/// Throws Error{usage} if there are no kernels.
MemoryBoundConstants fit_memory_bound(const std::vector<TimedRowKernel>& kernels, const DataSheet& gpu);

}  // namespace wt
