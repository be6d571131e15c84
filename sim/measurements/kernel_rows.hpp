// Measured kernels: one row a shape. Two schemas of CSV, told apart by their headers:
//   times        gpu, op, m, n, k, dtype, median_us, std_us, source; op is gemm (m x k times k x n) or a memory-bound
//                kernel over m rows of width n: one known to be (row_ops.hpp), or any without k whose name speaks of no
//                product, attention or communication
//   throughputs  source, kernel, gpu, shape, precision, value, unit, read_or_recalled; what of these words is
//   understood
//                stands in kernel_rates.hpp, other kernels say why not
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/cost/kernels/kernel_task.hpp"

namespace wt {

struct KernelRow : KernelShape {
  std::int64_t line = 0;
  std::string gpu, dtype, source;
  std::string origin;  ///< who published it (Origins)
  double seconds = 0;
  std::string unusable = {};  ///< why nothing can be predicted of this row, where the file does not say enough
  bool assumed = false;       ///< that groups are equal, or attention is not causal, where the shape does not say
};

/// Every row of the table, in order; one with a shape below 1, a time that is not above 0 or an op without a name says
/// so in `unusable`. Throws Error{usage} as read_csv does.
std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file);

}  // namespace wt
