// The device that a rank's tensors and kernels are on: the CPU, or a CUDA device (CUDA_VISIBLE_DEVICES chooses which
// there are). What the trainer needs of it beside LibTorch's tensors: opening it, its facts, and host memory that it
// copies from.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "configs/machine/fingerprint.hpp"

namespace wt {

/// "cpu" or "cuda". For cuda loads LibTorch's CUDA library and makes device `index` the calling thread's current one,
/// so call it before any other use of LibTorch. Throws Error{runtime} for a build without WT_CUDA, no such device or no
/// driver, or a library that does not load, naming it; Error{usage} for another name.
at::Device open_device(const std::string& name, std::int64_t index = 0);

/// cpu: device "cpu" alone. cuda: device (its name), cuda_driver (the newest CUDA it serves), cuda (runtime),
/// compute_capability, multiprocessors, device_memory_GiB, l2_MiB, gpu_uuid, pci_bus_id, where the runtime tells them
/// largest_clock_MHz and largest_memory_clock_MHz; and those of configs/machine/cuda_libraries.hpp and nvml.hpp, or
/// run.nvml: why NVML failed.
Fingerprint device_facts(at::Device device);

/// CUDA devices that this process sees; 0 in a build without CUDA.
std::int64_t visible_devices();

/// Calls fill(values) with host memory of as many floats as `to` (fp32, contiguous) has, which `to` has afterwards: its
/// own memory on the CPU.
void fill_from_host(const at::Tensor& to, const std::function<void(float*)>& fill);

/// Floats in host memory, page-locked once for a CUDA device, so that copies from it need no staging of the driver's.
class HostBuffer {
 public:
  HostBuffer() = default;
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  /// At least `count` floats, old values lost.
  void reserve(std::size_t count, at::Device device);
  float* data() const { return values_.get(); }

 private:
  void release();
  std::unique_ptr<float[]> values_;
  std::size_t capacity_ = 0;
  bool locked_ = false;
};

/// The host waits until the device has done all it was given. Nothing on the CPU.
void wait_for_device(at::Device device);

}  // namespace wt
