// The device of a rank's tensors and kernels: the CPU, or a CUDA device (among those in CUDA_VISIBLE_DEVICES). Covers
// what LibTorch's tensors do not: opening it, its facts, and host memory for copies.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "configs/machine/fingerprint.hpp"

namespace wt {

/// "cpu" or "cuda". For cuda it loads LibTorch's CUDA library and makes device `index` the calling thread's current
/// one, so call it before any other use of LibTorch. Throws Error{runtime} for a build without WT_CUDA, no such device,
/// no driver, or a library that does not load; Error{usage} for another name.
at::Device open_device(const std::string& name, std::int64_t index = 0);

/// cpu: only device "cpu". cuda: device (its name), cuda_driver (the newest CUDA that it supports), cuda (runtime),
/// compute_capability, multiprocessors, device_memory_GiB, l2_MiB, gpu_uuid, pci_bus_id, and if the runtime reports
/// them largest_clock_MHz and largest_memory_clock_MHz; also the facts of configs/machine/cuda_libraries.hpp and
/// nvml.hpp, or run.nvml with the reason why NVML failed.
Fingerprint device_facts(at::Device device);

/// CUDA devices that are visible to this process; 0 in a build without CUDA.
std::int64_t visible_devices();

/// Calls fill(values) with host memory for the floats of `to` (fp32, contiguous), then copies them to `to`. On the CPU
/// the memory is that of `to` itself.
void fill_from_host(const at::Tensor& to, const std::function<void(float*)>& fill);

/// Floats in host memory. For a CUDA device it is page-locked once, so that copies need no staging buffer.
class HostBuffer {
 public:
  HostBuffer() = default;
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  /// Makes room for `count` floats; old values are lost.
  void reserve(std::size_t count, at::Device device);
  float* data() const { return values_.get(); }

 private:
  void release();
  std::unique_ptr<float[]> values_;
  std::size_t capacity_ = 0;
  bool locked_ = false;
};

/// Waits until the device has finished all issued work. Nothing on the CPU.
void wait_for_device(at::Device device);

}  // namespace wt
