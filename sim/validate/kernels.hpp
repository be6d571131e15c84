// Predicts measured kernels from measurements of other shapes. Matrix products: the wave model (wave_model.hpp), fitted
// without the shape family in question, times a correction by what it leaves over at similar shapes. Memory-bound
// kernels: memory_bound.hpp, fitted on other widths. Kernels of libraries that publish rates (attention, grouped
// products, layers of experts): their shape (composed_kernels.hpp) times a factor of the library (libraries.hpp).
#pragma once
#include <vector>

#include "sim/measurements/kernel_rows.hpp"
#include "sim/validate/statistics.hpp"

namespace wt {

/// One judged row a measurement of `rows`, in order. Fits see `rows` and `reference`, except what is of the row's own
/// group: all rows of this GPU with its op, n and k. A GPU without enough other groups takes the constants of the
/// nearest generation as fractions of its own data sheet. The baseline holds MFU (products) or bandwidth (others)
/// constant: the median of the same rows.
std::vector<Judged> judge_kernels(const std::vector<KernelRow>& rows, const std::vector<KernelRow>& reference);

}  // namespace wt
