// The device that the kernel suite runs on: the CPU, or the first CUDA device (CUDA_VISIBLE_DEVICES chooses which one).
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "bench/profile/fingerprint.hpp"
#include "bench/suites/sampler.hpp"

namespace wt {

/// "cpu" or "cuda". For cuda loads LibTorch's CUDA library, so call it before any other use of LibTorch. Throws
/// Error{runtime} for a build without WT_CUDA, no device or driver, or a library that does not load, naming it;
/// Error{usage} for another name.
at::Device open_device(const std::string& name);

/// cpu: device "cpu" alone. cuda: device (its name), driver (the newest CUDA it serves), cuda (runtime),
/// compute_capability, multiprocessors, device_memory_GiB, l2_MiB, gpu_uuid, pci_bus_id, and where the runtime tells
/// them largest_clock_MHz and largest_memory_clock_MHz.
Fingerprint device_facts(at::Device device);

/// Thread-CPU time, or CUDA events on the current stream.
std::unique_ptr<Stopwatch> make_stopwatch(at::Device device);

}  // namespace wt
