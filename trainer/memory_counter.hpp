// Counts tensor memory: a CPU allocator that wraps LibTorch's own and keeps live and peak bytes of this process.
#pragma once
#include <cstdint>

namespace wt {

/// Installs the counting allocator; once, before the first tensor.
void install_memory_counter();
/// Bytes of tensors alive now.
std::int64_t live_tensor_bytes();
/// Highest value since the last reset_peak_tensor_bytes().
std::int64_t peak_tensor_bytes();
void reset_peak_tensor_bytes();
/// Resident memory of this process, bytes; 0 where /proc does not say.
std::int64_t resident_bytes();

}  // namespace wt
