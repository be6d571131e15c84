// Compares published kernel times with the estimator that times steps (sim/cost/kernels/kernel_times.hpp), fitted
// without the points of the row's group.
#pragma once
#include <vector>

#include "sim/fit/kernel_fit.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// One judged row for each of `rows`, in order. A row's group is left out of its fit: all points of this GPU with the
/// row's op, n and k (KernelPoint::group); of a grouped product, what `grouped` says. The baseline assumes constant MFU
/// (products) or bandwidth (other ops): the median of the other groups in `reference` with this GPU and op.
std::vector<Judged> judge_kernels(const std::vector<KernelRow>& rows, const PublishedKernelFit& fit,
                                  const std::vector<KernelPoint>& reference, GroupedOut grouped = GroupedOut::shape);

}  // namespace wt
