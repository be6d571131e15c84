// One rank's state in host memory, followed by its checksum. It is sent between nodes and verified on arrival.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "trainer/device/device.hpp"

namespace wt {

/// The memory stays valid until an aborted transfer has released it. Not counted as tensor memory.
class PackedState {
 public:
  /// Holds `elements` floats, page-locked for copies from `device`.
  PackedState(std::int64_t elements, at::Device device);
  float* data() const { return buffer_->data(); }
  std::span<float> values() const { return {data(), static_cast<std::size_t>(elements_)}; }
  /// The values and their checksum.
  at::Tensor tensor() const;
  /// Stores the XXH3 checksum of the values.
  void seal();
  /// Invalidates the checksum, so that only values with a checksum of their own count as intact.
  void unseal();
  /// Whether the values match the checksum.
  bool intact() const;

 private:
  std::uint64_t checksum() const;
  std::int64_t elements_;
  std::shared_ptr<HostBuffer> buffer_;
};

}  // namespace wt
