// One row of the kernel suite before it is timed: its name, inputs and allowed error. Rows are work items of the step
// program, and cases that no step has as an item (copies, launches, aims).
#pragma once
#include <functional>
#include <vector>

#include "bench/suites/problems.hpp"
#include "configs/files/profile.hpp"

namespace wt {

struct BenchCase {
  Measurement row;           ///< without samples; counters "flops" and "bytes", the bytes that must be moved
  bool backward = false;     ///< time autograd's backward pass of `make`, if it goes through autograd
  double largest_error = 0;  ///< allowed error relative to the largest value; 0 = bit for bit
  bool beyond_l2 = true;  ///< on a device, inputs must not be in the L2 cache; false: no inputs, or not on the device
  std::function<KernelProblem(NormalPool&)> make;
  /// The same with few rows, where fp64 on the host would take long; if undefined, `make` is checked.
  std::function<KernelProblem(NormalPool&)> make_checked;
  /// Adds counters that do not come from samples, after the result was checked.
  std::function<void(Measurement&)> also;
};

/// Keeps a reference to `run`.
BenchCase bench_case(const WorkItem& item, const RunSpec& run, at::Device device, GroupedAs as = GroupedAs::picked);
/// Cases of all items. On a GPU, grouped products in bf16 are measured in every implementation, so that the trainer can
/// choose (trainer/model/grouped_choice.hpp).
std::vector<BenchCase> bench_cases(const std::vector<WorkItem>& items, const RunSpec& run, at::Device device);

/// "host_to_device", "device_to_host" (page-locked) and "device_to_device" copies in several sizes, and "launch", the
/// cost of one more kernel. On the CPU only device_to_device, a memcpy beyond the caches. A copy within memory reads
/// and writes each byte: its counter "bytes", and so its rate, counts twice its size. Kernels' rates are given as
/// shares of it.
std::vector<BenchCase> machine_cases(at::Device device, bool quick);

/// The clock that times kernels on a device, as profiles name it.
inline const char* clock_of(at::Device device) { return device.is_cpu() ? "thread_cpu" : "device"; }

/// fp32 1e-4, bf16 3e-2: rounding of results, and of sums over a few thousand terms, with a margin.
double largest_allowed_error(Precision precision);

}  // namespace wt
