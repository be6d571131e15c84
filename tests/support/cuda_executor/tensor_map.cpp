#include "tests/support/cuda_executor/tensor_map.hpp"

#include <algorithm>

namespace wt::cuda_executor {

const char* TensorMap::wrong() const {
  if (rank < 1 || rank > 5) return "rank";
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return "address not on 16 bytes";
  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] < 1 || extents[d] > uint64_t{1} << 32) return "extent";
    if (box[d] < 1 || box[d] > 256) return "box";
    if (steps[d] < 1 || steps[d] > 8) return "element stride";
    if (d > 0 && (strides[d - 1] % 16 != 0 || strides[d - 1] >= uint64_t{1} << 40)) return "stride";
  }
  if (row_bytes() % 16 != 0) return "inner extent of the box";
  if (swizzle != Swizzle::none && row_bytes() > span_of(swizzle)) return "inner extent of the box beyond the swizzle";
  return nullptr;
}

uint32_t TensorMap::rows() const {
  uint32_t rows = 1;
  for (uint32_t d = 1; d < rank; ++d) rows *= (box[d] + steps[d] - 1u) / steps[d];
  return rows;
}

void TensorMap::each_row(const std::array<int, 5>& corner,
                         const std::function<void(uint32_t, const unsigned char*, uint32_t, uint32_t)>& row) const {
  const int64_t extent = static_cast<int64_t>(extents[0]);
  const int64_t begin = std::clamp<int64_t>(-int64_t{corner[0]}, 0, box[0]);
  const int64_t end = std::clamp<int64_t>(extent - corner[0], begin, box[0]);
  for (uint32_t number = 0; number < rows(); ++number) {
    bool within = end > begin;
    int64_t offset = (corner[0] + begin) * int64_t{element_bytes};
    uint32_t rest = number;
    for (uint32_t d = 1; d < rank; ++d) {
      const uint32_t count = (box[d] + steps[d] - 1u) / steps[d];
      const int64_t at = corner[d] + int64_t{rest % count} * steps[d];
      within = within && at >= 0 && at < static_cast<int64_t>(extents[d]);
      offset += at * static_cast<int64_t>(strides[d - 1]);
      rest /= count;
    }
    row(number, within ? data + offset : nullptr, static_cast<uint32_t>(begin),
        within ? static_cast<uint32_t>(end - begin) : 0);
  }
}

}  // namespace wt::cuda_executor
