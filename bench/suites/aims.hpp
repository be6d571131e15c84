// What our kernels are meant to reach on an H200, as rows to measure and a verdict on each.
#pragma once
#include <string>
#include <vector>

#include "bench/suites/bench_case.hpp"
#include "configs/files/profile.hpp"

namespace wt {

/// A rate as a share of the best of others' in the same profile, or seconds.
struct Aim {
  std::string what;
  std::string row;                  ///< of the profile, by name
  std::vector<std::string> beside;  ///< rows whose rates it is held to; none: the aim is of seconds
  double limit = 0;                 ///< least share, or most seconds
};

struct Aims {
  std::vector<BenchCase> cases;
  std::vector<Aim> aims;
};

/// bf16, random data. Memory-bound kernels at DBRX's widths beside the copy of memory; the router of 8,192 tokens and
/// 64 experts; grouped products by our kernel, LibTorch's _grouped_mm and a loop of cuBLASLt's, forward and both
/// backward products each on its own, balanced: 16 experts of 2,048 rows beside one dense product of all rows, and 64
/// to 256 experts of 128 to 512. `small`: the same rows of a size that a CPU computes in a second.
Aims kernel_aims(at::Device device, bool small);

/// A line each: aim, what was reached, "met" or "missed"; "failed", "not measured" or "throttled" where the rows say no
/// more, and "not judged" on another device than `judged_on`.
std::string aims_table(const std::vector<Aim>& aims, const Profile& profile, const std::string& judged_on = "H200");

}  // namespace wt
