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

/// What is measured: items, the run whose model, sequence and optimizer their inputs are made of, and cases of other
/// kinds.
struct KernelWork {
  RunSpec run;
  std::vector<WorkItem> items;
  std::vector<BenchCase> others = {};
};

/// One measurement per item and case: clock thread_cpu (device on cuda), one intra-op thread, counters max_rel_error,
/// flops and bytes; on cuda also what the driver said of the device during the samples, whose facts of the whole timing
/// are the fingerprint (configs/machine/device_monitor.hpp). An item whose result is wrong, or that throws, is a
/// failure, beside the samples it gave before; the others go on. What `known` has of an item counts: only the samples
/// that it lacks are taken. `save` is called every few seconds with all that was measured so far; a stop signal
/// (trainer/launch/agent.hpp) ends the suite with that. Throws Error{runtime} when the device is not there.
Profile bench_kernels(const KernelWork& work, const SuiteOptions& options, const Profile& known = {},
                      const std::function<void(const Profile&)>& save = {});

}  // namespace wt
