// The kernel suite: times and checks every work item of a run.
#pragma once
#include "configs/spec/profile.hpp"
#include "configs/spec/run.hpp"

namespace wt {

struct SuiteOptions {
  bool quick = false;
  std::uint64_t seed = 17;  ///< of the input data
  int samples = 9;
};

/// One measurement per case of kernel_cases(): clock thread_cpu, one intra-op thread, counters max_rel_error, flops and
/// bytes. Throws Error{runtime} when a kernel's result is wrong.
std::vector<Measurement> bench_kernels(const RunSpec& run, const SuiteOptions& options);

}  // namespace wt
