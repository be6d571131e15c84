// Published times of kernels as points of the estimators: each a kernel, the GPU's data sheet, and its seconds.
#pragma once
#include <string>
#include <vector>

#include "sim/cost/kernels/kernel_task.hpp"
#include "sim/measurements/kernel_rows.hpp"

namespace wt {

/// One measurement.
struct KernelPoint : KernelTask {
  double seconds = 0;
  /// What is left out together: GPU, op, n and k; of attention origin and pass.
  std::string group;
  std::string origin;  ///< who published it (Origins)
  std::string reason;  ///< why it cannot be used; empty = it can

  /// Seconds that the data sheet allows at least: of FLOPs (products) or bytes (others).
  double least_s() const;
  /// Of what the data sheet allows.
  double share_of_peak() const { return least_s() / seconds; }
};

/// Kernels that no plan asks for have a reason, too: a layer of experts as one kernel, and what a named library makes
/// of a kernel that is bound by memory.
KernelPoint kernel_point(const KernelRow& row);

/// The usable points, one a measurement: what stands in a file and in another counts once.
std::vector<KernelPoint> usable_points(const std::vector<KernelRow>& rows);

}  // namespace wt
