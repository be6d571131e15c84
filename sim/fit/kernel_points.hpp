// Published kernel times as points for fits: a kernel, the data sheet of its GPU, and its seconds.
#pragma once
#include <string>
#include <vector>

#include "sim/cost/kernels/kernel_task.hpp"
#include "sim/measurements/kernel_rows.hpp"

namespace wt {

/// One measurement.
struct KernelPoint : KernelTask {
  double seconds = 0;
  /// Points that are left out of a fit together: same GPU, op, n and k; for grouped products, n and k on any GPU; for
  /// attention, same origin and pass.
  std::string group;
  std::string origin;  ///< who published it (Origins)
  std::string reason;  ///< why the point cannot be used; empty = it can

  /// Least seconds that the data sheet allows, by FLOPs (products) or bytes (other ops).
  double least_s() const;
  /// Share of the data sheet's rate that the kernel reached.
  double share_of_peak() const { return least_s() / seconds; }
};

/// Kernels that no plan uses get a reason, too: a layer of experts as one kernel, and a named library's version of a
/// memory-bound kernel.
KernelPoint kernel_point(const KernelRow& row);

/// The usable points but for those that time more than their kernel. A measurement that is in several files counts
/// once.
std::vector<KernelPoint> usable_points(const std::vector<KernelRow>& rows);

}  // namespace wt
