// Counts tensor memory of this process: on the CPU by an allocator that wraps LibTorch's and tracks live and peak
// bytes, on CUDA by the requested bytes in the statistics of LibTorch's caching allocator.
#pragma once
#include <c10/core/Device.h>

#include <cstdint>

namespace wt {

/// Installs the CPU's counting allocator; call it once, before the first tensor. On CUDA, memory allocated before the
/// call does not count, so first create the libraries' workspaces, which live as long as the process.
void install_memory_counter(c10::Device device);
/// Bytes of live tensors.
std::int64_t live_tensor_bytes(c10::Device device = c10::DeviceType::CPU);
/// The maximum since the last reset_peak_tensor_bytes().
std::int64_t peak_tensor_bytes(c10::Device device = c10::DeviceType::CPU);
void reset_peak_tensor_bytes(c10::Device device = c10::DeviceType::CPU);
/// Device memory reserved by the caching allocator, including rounding and fragmentation; 0 on the CPU.
std::int64_t reserved_tensor_bytes(c10::Device device);
/// Resident memory of this process, bytes; 0 where /proc lacks it.
std::int64_t resident_bytes();

}  // namespace wt
