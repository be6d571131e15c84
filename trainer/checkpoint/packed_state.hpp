// One rank's state in host memory, with its checksum behind it: what travels between nodes and is compared on arrival.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "trainer/device/device.hpp"

namespace wt {

/// Memory that outlives a transfer which an error has cut short. Not counted as tensor memory.
class PackedState {
 public:
  /// For so many floats, page-locked for copies from that device.
  PackedState(std::int64_t elements, at::Device device);
  float* data() const { return buffer_->data(); }
  std::span<float> values() const { return {data(), static_cast<std::size_t>(elements_)}; }
  /// Values and checksum.
  at::Tensor tensor() const;
  /// Puts down the XXH3 checksum of the values.
  void seal();
  /// What is there is not intact any more: the next values have to bring their own checksum.
  void unseal();
  /// Whether the values are those that were sealed.
  bool intact() const;

 private:
  std::uint64_t checksum() const;
  std::int64_t elements_;
  std::shared_ptr<HostBuffer> buffer_;
};

}  // namespace wt
