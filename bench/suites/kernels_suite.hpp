// The kernel suite: times and checks every work item of a run.
#pragma once
#include <string>

#include "configs/spec/profile.hpp"
#include "configs/spec/run.hpp"

namespace wt {

struct SuiteOptions {
  bool quick = false;
  std::uint64_t seed = 17;  ///< of the input data
  int samples = 9;
  std::string device = "cpu";  ///< or "cuda"; see device.hpp
};

/// One measurement per case of kernel_cases(): clock thread_cpu (device on cuda), one intra-op thread, counters
/// max_rel_error, flops and bytes; on cuda also what the driver said of the device during the samples, whose facts of the
/// whole timing are the fingerprint (bench/profile/device_monitor.hpp). Throws Error{runtime} when a kernel's result is
/// wrong or the device is not there.
Profile bench_kernels(const RunSpec& run, const SuiteOptions& options);

}  // namespace wt
