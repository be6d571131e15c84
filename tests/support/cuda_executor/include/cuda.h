// Stands for CUDA's header: tensor maps.
#pragma once
#include <cstdint>
#include <cstring>

#include "tests/support/cuda_executor/tensor_map.hpp"

using cuuint32_t = uint32_t;
using cuuint64_t = uint64_t;
struct alignas(64) CUtensorMap {
  cuuint64_t opaque[16];
};
enum CUresult { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE };
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 };
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle {
  CU_TENSOR_MAP_SWIZZLE_NONE,
  CU_TENSOR_MAP_SWIZZLE_32B,
  CU_TENSOR_MAP_SWIZZLE_64B,
  CU_TENSOR_MAP_SWIZZLE_128B
};
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

__attribute__((no_sanitize("thread"))) inline wt::cuda_executor::TensorMap wt_tensor_map(const CUtensorMap& opaque) {
  wt::cuda_executor::TensorMap map;
  std::memcpy(static_cast<void*>(&map), &opaque, sizeof map);
  return map;
}

inline CUresult wt_encode_tiled(CUtensorMap* to, CUtensorMapDataType, cuuint32_t rank, void* data,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  wt::cuda_executor::TensorMap map;
  if (rank < 1 || rank > 5 || reinterpret_cast<uintptr_t>(to) % 64 != 0) return CUDA_ERROR_INVALID_VALUE;
  map.data = static_cast<const unsigned char*>(data), map.rank = rank, map.element_bytes = 2;
  map.swizzle = static_cast<wt::cuda_executor::Swizzle>(swizzle);
  for (cuuint32_t d = 0; d < rank; ++d) {
    if (box[d] > 256 || steps[d] > 8) return CUDA_ERROR_INVALID_VALUE;
    map.extents[d] = extents[d];
    if (d > 0) map.strides[d - 1] = strides[d - 1];
    map.box[d] = static_cast<uint16_t>(box[d]);
    map.steps[d] = d == 0 ? 1 : static_cast<uint8_t>(steps[d]);  // without interleave the first is ignored
  }
  if (map.wrong()) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, &map, sizeof map);
  return CUDA_SUCCESS;
}
