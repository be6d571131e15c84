// Counts tensor memory of this process. On the CPU by an allocator that wraps LibTorch's own and keeps live and peak
// bytes; on CUDA by the statistics of LibTorch's caching allocator: the bytes that were asked for.
#pragma once
#include <c10/core/Device.h>

#include <cstdint>

namespace wt {

/// Installs the CPU's counting allocator; once, before the first tensor. On CUDA what is held by then does not count:
/// make the libraries' workspaces first, which live as long as the process.
void install_memory_counter(c10::Device device);
/// Bytes of tensors alive now.
std::int64_t live_tensor_bytes(c10::Device device = c10::DeviceType::CPU);
/// Highest value since the last reset_peak_tensor_bytes().
std::int64_t peak_tensor_bytes(c10::Device device = c10::DeviceType::CPU);
void reset_peak_tensor_bytes(c10::Device device = c10::DeviceType::CPU);
/// Device memory that the caching allocator holds, in use or not: rounding and fragmentation included; 0 on the CPU.
std::int64_t reserved_tensor_bytes(c10::Device device);
/// Resident memory of this process, bytes; 0 where /proc does not say.
std::int64_t resident_bytes();

}  // namespace wt
