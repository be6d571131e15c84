// Performance aims of our kernels on an H200: rows to measure, and a verdict on each.
#pragma once
#include <string>
#include <vector>

#include "bench/suites/bench_case.hpp"
#include "configs/files/profile.hpp"

namespace wt {

/// A rate relative to the best other rate in the same profile, or a time.
struct Aim {
  std::string what;
  std::string row;                         ///< name of the row in the profile
  std::vector<std::string> compared_with;  ///< rows to compare rates with; none: the aim is a time
  double limit = 0;                        ///< smallest relative rate, or largest time in seconds
};

struct Aims {
  std::vector<BenchCase> cases;
  std::vector<Aim> aims;
};

/// bf16, random data. Memory-bound kernels at DBRX's widths are compared with a copy of memory. The router has 8,192
/// tokens and 64 experts. Grouped products (forward and both backward products, balanced) are computed by our kernel,
/// LibTorch's _grouped_mm and a loop over cuBLASLt: 16 experts of 2,048 rows, also compared with one dense product of
/// all rows, and 64 to 256 experts of 128 to 512 rows. `small`: the same rows at a size that a CPU computes in a
/// second.
Aims kernel_aims(at::Device device, bool small);

/// One line each: aim, result, verdict. Verdicts are "met" or "missed"; "failed", "not measured" or "throttled" where
/// the rows allow no judgement; "not judged" on a device other than `judged_on`.
std::string aims_table(const std::vector<Aim>& aims, const Profile& profile, const std::string& judged_on = "H200");

}  // namespace wt
