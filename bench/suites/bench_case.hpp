// One row of the kernel suite before it is timed: what the row says, how its inputs are made, and what error is
// allowed. Work items of the step program are such rows, and so is what no step has as an item of its own (copies,
// launches, aims).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench/suites/problems.hpp"
#include "configs/files/profile.hpp"

namespace wt {

struct BenchCase {
  Measurement row;           ///< without samples; counters "flops" and "bytes", those that must move
  bool backward = false;     ///< time autograd's backward pass of `make`, where it goes through autograd
  double largest_error = 0;  ///< allowed, over the largest value; 0 = bit for bit
  bool beyond_l2 = true;     ///< on a device its inputs are not to be in the L2; false: it has none, or not there
  std::function<KernelProblem(NormalPool&)> make;
  /// The same with few rows, where fp64 on the host would take long; undefined = `make` is what is checked.
  std::function<KernelProblem(NormalPool&)> make_checked;
  /// Adds counters that no sample has, once the result was right.
  std::function<void(Measurement&)> also;
};

/// Keeps a reference to `run`.
BenchCase bench_case(const WorkItem& item, const RunSpec& run, at::Device device, GroupedAs as = GroupedAs::picked);
/// Of all items; on a GPU grouped products in bf16 in every way that there is, for the trainer to pick by
/// (trainer/model/grouped_choice.hpp).
std::vector<BenchCase> bench_cases(const std::vector<WorkItem>& items, const RunSpec& run, at::Device device);

/// "host_to_device", "device_to_host" (page-locked) and "device_to_device" copies in several sizes, and "launch", what
/// one more kernel costs; on the CPU device_to_device alone, a memcpy beyond the caches. A copy within memory reads and
/// writes each byte: its counter "bytes", and with it its rate, is twice its size, which the kernels' rates are a share
/// of.
std::vector<BenchCase> machine_cases(at::Device device, bool quick);

/// What times a kernel there, as profiles name it.
inline const char* clock_of(at::Device device) { return device.is_cpu() ? "thread_cpu" : "device"; }

/// fp32 1e-4, bf16 3e-2: rounding of results and of sums over a few thousand terms, with room.
double largest_allowed_error(Precision precision);

}  // namespace wt
