// Measured kernels: one row per shape. Three schemas of CSV, told apart by their headers:
//   times        gpu, op, m, n, k, dtype, median_us, std_us, source; op is gemm (m x k times k x n) or a memory-bound
//                kernel over m rows of width n: a known one (row_ops.hpp), or one without k whose name contains no word
//                for products, attention or communication
//   throughputs  source, kernel, gpu, shape, precision, value, unit, read_or_recalled;
//                kernel_rates.hpp says which words are understood, and rows of other kernels say why they are not
//   groups       source, gpu, library, op, precision, groups, rows_per_group, n, k, time_us, tflops, use; n and k are
//   the
//                sizes of a group's weights; op is forward, input_gradient or weight_gradient; one of time_us and
//                tflops, or both; use is empty, or apart if more than the kernel was timed
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "sim/cost/kernels/kernel_task.hpp"

namespace wt {

struct KernelRow : KernelShape {
  std::int64_t line = 0;
  std::string gpu, dtype, source;
  std::string origin;  ///< who published it (Origins)
  double seconds = 0;
  std::string unusable = {};  ///< why the row cannot be predicted; empty = it can
  bool apart = false;         ///< more than the kernel was timed: in no fit, and judged apart
  bool assumed = false;       ///< equal groups, or attention without a causal mask, assumed because the shape does not
                              ///< say
};

/// Every row of the table, in order. `unusable` says so if a row has a shape below 1, a time that is not above 0 or an
/// op without a name. Throws Error{usage} as read_csv does.
std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file);

/// The grouped products of a profile: forward, in 16 bits. `source`: the profile's name. Rows have no line.
std::vector<KernelRow> grouped_rows(const Profile& profile, const std::string& source);

}  // namespace wt
