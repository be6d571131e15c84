// The tensor map of the copy engine: what cuTensorMapEncodeTiled() of CUDA 13.0 takes, and which elements a box holds.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/support/cuda_executor/sm90_layouts.hpp"

namespace wt::cuda_executor {

/// Dimension 0 is contiguous.
struct TensorMap {
  const unsigned char* data = nullptr;
  uint32_t rank = 0, element_bytes = 0;
  std::array<uint64_t, 5> extents{};  ///< elements
  std::array<uint64_t, 4> strides{};  ///< of dimensions 1 and up, bytes
  std::array<uint16_t, 5> box{};      ///< elements that it reaches over
  std::array<uint8_t, 5> steps{};     ///< from one element that is copied to the next
  Swizzle swizzle = Swizzle::none;

  /// What of the header's requirements it misses; null if nothing.
  const char* wrong() const;
  uint32_t row_bytes() const { return box[0] * element_bytes; }
  uint32_t rows() const;
  uint32_t bytes() const { return rows() * row_bytes(); }

  /// row(number, source, first, count): of the box that begins at `corner`, row by row, the `count` elements from
  /// `first` on that lie within the tensor, and where they are. All others are zeros.
  void each_row(const std::array<int, 5>& corner,
                const std::function<void(uint32_t, const unsigned char*, uint32_t, uint32_t)>& row) const;
  /// Where a row's unit of 16 bytes comes to lie when the box is copied to `target`: the rows one after another,
  /// swizzled by the address.
  uint32_t address(uint32_t target, uint32_t row, uint32_t unit) const {
    return swizzled(swizzle, target + row * row_bytes() + unit * kUnit);
  }
};
static_assert(sizeof(TensorMap) <= 128);  // CUtensorMap

}  // namespace wt::cuda_executor
