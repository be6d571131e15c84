// The kernel suite: times and checks every work item of a run.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench/suites/bench_case.hpp"
#include "configs/files/profile.hpp"
#include "configs/files/run.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

struct SuiteOptions {
  bool quick = false;
  std::uint64_t seed = 17;  ///< of the input data
  int samples = 9;
  std::string device = "cpu";  ///< or "cuda"; see device.hpp
};

/// What to measure: items, the run that defines the model, sequence and optimizer of their inputs, and other cases.
struct KernelWork {
  RunSpec run;
  std::vector<WorkItem> items;
  std::vector<BenchCase> others = {};
};

/// One measurement per item and case: clock thread_cpu (device on cuda), one intra-op thread, counters max_rel_error,
/// flops and bytes. On cuda also the driver's readings during the samples; those of the whole run go to the fingerprint
/// (configs/machine/device_monitor.hpp). An item with a wrong result, or that throws, is recorded as a failure with its
/// earlier samples, and the others continue. Samples in `known` count, and only missing ones are taken. `save` is
/// called every few seconds with all measurements so far. A stop signal (trainer/launch/agent.hpp) ends the suite,
/// which returns what it has. Throws Error{runtime} when the device is missing.
Profile bench_kernels(const KernelWork& work, const SuiteOptions& options, const Profile& known = {},
                      const std::function<void(const Profile&)>& save = {});

}  // namespace wt
