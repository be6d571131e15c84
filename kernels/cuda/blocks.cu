// Block quantisation: one byte a value and one fp32 scale per 128 values of a row. Eight lanes process a block, 16
// values each. Where rows are whole blocks, neighbouring lanes access neighbouring 16 bytes, and indices need no
// division.
#include <cuda_fp8.h>
#include <float.h>
#include <limits.h>

#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kLanes = 8;  // per quantisation block
constexpr int kPerLane = kQuantizeBlock / kLanes;
constexpr int kBlocks = kThreads / kLanes;  // quantisation blocks that a thread block processes at once

/// The values of a lane: pack i is pack number i * kLanes + lane of the quantisation block.
template <class E>
constexpr int kPacks = kPerLane / kWide<E>;
template <class E>
using Values = Pack<E, kWide<E>>;
template <class E>
using Codes = Pack<unsigned char, kWide<E>>;

/// Loads the packs of a block of n values at `x`; packs beyond n are zero. kWhole: n is kQuantizeBlock.
template <bool kWhole, class V, int kCount, int kPacks>
__device__ inline void read(const V* x, int64_t n, int lane, Pack<V, kCount> (&packs)[kPacks]) {
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int first = (i * kLanes + lane) * kCount;
    if constexpr (kWhole) {
      packs[i] = load(reinterpret_cast<const Pack<V, kCount>*>(x + first));
    } else {
      packs[i] = {};
#pragma unroll
      for (int j = 0; j < kCount; ++j)
        if (first + j < n) packs[i].of[j] = x[first + j];
    }
  }
}
template <bool kWhole, class V, int kCount>
__device__ inline void write(V* x, int64_t n, int number, const Pack<V, kCount>& pack) {
  const int first = number * kCount;
  if constexpr (kWhole) {
    *reinterpret_cast<Pack<V, kCount>*>(x + first) = pack;
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j)
      if (first + j < n) x[first + j] = pack.of[j];
  }
}

/// body(first value, values in the block, number of the block) for every eight lanes. All lanes of a warp take part:
/// those beyond the last block repeat it.
template <bool kWhole, class Body>
__device__ inline void for_quantize_blocks(int64_t T, int64_t D, Body body) {
  const int64_t per_row = (D + kQuantizeBlock - 1) / kQuantizeBlock, blocks = T * per_row;
  const int64_t of_warp = threadIdx.x / kWarp * (kWarp / kLanes), own = threadIdx.x % kWarp / kLanes;
#pragma unroll 1
  for (int64_t b = int64_t{blockIdx.x} * kBlocks + of_warp; b < blocks; b += int64_t{gridDim.x} * kBlocks) {
    const int64_t block = b + own < blocks ? b + own : blocks - 1;
    if constexpr (kWhole) {
      body(block * kQuantizeBlock, kQuantizeBlock, block);
    } else {
      const int64_t at = block % per_row * kQuantizeBlock;
      body(block / per_row * D + at, D - at < kQuantizeBlock ? D - at : kQuantizeBlock, block);
    }
  }
}

template <bool kFp8, class E>
__device__ inline Codes<E> codes_of(const Floats<E, kWide<E>>& values) {
  Codes<E> codes;
#pragma unroll
  for (int j = 0; j < kWide<E>; j += 2) {
    if constexpr (kFp8) {
      const unsigned both =
          __nv_cvt_float2_to_fp8x2(make_float2(values.of[j], values.of[j + 1]), __NV_SATFINITE, __NV_E4M3);
      codes.of[j] = static_cast<unsigned char>(both), codes.of[j + 1] = static_cast<unsigned char>(both >> 8);
    } else {
      codes.of[j] = static_cast<unsigned char>(__float2int_rn(values.of[j]));
      codes.of[j + 1] = static_cast<unsigned char>(__float2int_rn(values.of[j + 1]));
    }
  }
  return codes;
}
template <bool kFp8, class E>
__device__ inline Floats<E, kWide<E>> values_of(const Codes<E>& codes) {
  Floats<E, kWide<E>> values;
#pragma unroll
  for (int j = 0; j < kWide<E>; j += 2) {
    if constexpr (kFp8) {
      const auto both = static_cast<__nv_fp8x2_storage_t>(codes.of[j] | codes.of[j + 1] << 8);
      const float2 two = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(both, __NV_E4M3)));
      values.of[j] = two.x, values.of[j + 1] = two.y;
    } else {
      values.of[j] = static_cast<float>(static_cast<signed char>(codes.of[j]));
      values.of[j + 1] = static_cast<float>(static_cast<signed char>(codes.of[j + 1]));
    }
  }
  return values;
}

template <class E, bool kFp8, bool kWhole>
__global__ void quantize_kernel(const E* x, int64_t T, int64_t D, unsigned char* q, float* scale) {
  const int lane = threadIdx.x % kLanes;
  const float top_code = kFp8 ? 448.0f : 127.0f;
  for_quantize_blocks<kWhole>(T, D, [&](int64_t first, int64_t n, int64_t block) {
    Values<E> packs[kPacks<E>];
    read<kWhole>(x + first, n, lane, packs);
    int bits = 0;  // of the largest absolute value; bits order like the numbers, NaN above infinity
#pragma unroll
    for (int i = 0; i < kPacks<E>; ++i)
#pragma unroll
      for (int j = 0; j < kWide<E>; ++j) bits = max(bits, __float_as_int(to_float(packs[i].of[j])) & INT_MAX);
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset /= 2) bits = max(bits, __shfl_xor_sync(kAllLanes, bits, offset));
    const float largest = __int_as_float(bits);
    const bool infinite = !(largest <= FLT_MAX), zero = infinite || largest < kQuantizeZero;
    const float inverse = zero ? 0.0f : top_code / largest;
#pragma unroll
    for (int i = 0; i < kPacks<E>; ++i) {
      Floats<E, kWide<E>> values(packs[i]);
#pragma unroll
      for (int j = 0; j < kWide<E>; ++j) values.of[j] = zero ? 0.0f : values.of[j] * inverse;
      write<kWhole>(q + first, n, i * kLanes + lane, codes_of<kFp8, E>(values));
    }
    if (lane == 0) scale[block] = infinite ? __int_as_float(0x7fc00000) : zero ? 0.0f : largest / top_code;
  });
}

template <class E, bool kFp8, bool kWhole>
__global__ void dequantize_kernel(const unsigned char* q, const float* scale, int64_t T, int64_t D, E* x) {
  const int lane = threadIdx.x % kLanes;
  for_quantize_blocks<kWhole>(T, D, [&](int64_t first, int64_t n, int64_t block) {
    Codes<E> packs[kPacks<E>];
    read<kWhole>(q + first, n, lane, packs);
    const float unit = scale[block];
#pragma unroll
    for (int i = 0; i < kPacks<E>; ++i) {
      Floats<E, kWide<E>> values = values_of<kFp8, E>(packs[i]);
#pragma unroll
      for (int j = 0; j < kWide<E>; ++j) values.of[j] *= unit;
      write<kWhole>(x + first, n, i * kLanes + lane, values.rounded());
    }
  });
}

/// Whether rows are whole blocks and both arrays are aligned to 16 bytes.
bool whole(const void* x, const void* q, int64_t D) {
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  return D % kQuantizeBlock == 0 && aligned(x) && aligned(q);
}

unsigned grid(int64_t T, int64_t D) { return blocks_for(T * ((D + kQuantizeBlock - 1) / kQuantizeBlock), kBlocks); }

template <class E, bool kFp8>
void quantize(cudaStream_t stream, const E* x, int64_t T, int64_t D, unsigned char* q, float* scale) {
  if (whole(x, q, D))
    launch(quantize_kernel<E, kFp8, true>, grid(T, D), kThreads, 0, stream, x, T, D, q, scale);
  else
    launch(quantize_kernel<E, kFp8, false>, grid(T, D), kThreads, 0, stream, x, T, D, q, scale);
}
template <class E, bool kFp8>
void dequantize(cudaStream_t stream, const unsigned char* q, const float* scale, int64_t T, int64_t D, E* x) {
  if (whole(x, q, D))
    launch(dequantize_kernel<E, kFp8, true>, grid(T, D), kThreads, 0, stream, q, scale, T, D, x);
  else
    launch(dequantize_kernel<E, kFp8, false>, grid(T, D), kThreads, 0, stream, q, scale, T, D, x);
}

}  // namespace

template <class E>
WtStatus quantize_blocks(void* handle, const void* x, bool fp8, int64_t T, int64_t D, void* q, float* scale) {
  const E* from = static_cast<const E*>(x);
  unsigned char* to = static_cast<unsigned char*>(q);
  if (fp8)
    quantize<E, true>(stream_of(handle), from, T, D, to, scale);
  else
    quantize<E, false>(stream_of(handle), from, T, D, to, scale);
  return launched("wt_quantize_blocks");
}

template <class E>
WtStatus dequantize_blocks(void* handle, const void* q, const float* scale, bool fp8, int64_t T, int64_t D, void* x) {
  const unsigned char* from = static_cast<const unsigned char*>(q);
  E* to = static_cast<E*>(x);
  if (fp8)
    dequantize<E, true>(stream_of(handle), from, scale, T, D, to);
  else
    dequantize<E, false>(stream_of(handle), from, scale, T, D, to);
  return launched("wt_dequantize_blocks");
}

template decltype(quantize_blocks<float>) quantize_blocks<float>;
template decltype(quantize_blocks<float>) quantize_blocks<__nv_bfloat16>;
template decltype(dequantize_blocks<float>) dequantize_blocks<float>;
template decltype(dequantize_blocks<float>) dequantize_blocks<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
