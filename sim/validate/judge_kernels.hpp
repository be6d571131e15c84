// Published times of kernels beside what the estimator that times steps (sim/cost/kernels/kernel_times.hpp) says of
// them without the points of their own group.
#pragma once
#include <vector>

#include "sim/fit/kernel_fit.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// One judged row a measurement of `rows`, in order. The group that has no part in an answer: all points of this GPU
/// with the row's op, n and k (KernelPoint::group). The baseline holds MFU (products) or bandwidth (others) constant:
/// the median of the other groups among `reference`, of this GPU and op.
std::vector<Judged> judge_kernels(const std::vector<KernelRow>& rows, const PublishedKernelFit& fit,
                                  const std::vector<KernelPoint>& reference);

}  // namespace wt
