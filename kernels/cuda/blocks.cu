// One byte a value and one fp32 scale for every 128 of a row. A warp takes a block, four neighbours a lane: one load of
// 8 or 16 bytes and one store of 4 where rows and arrays allow it.
#include <cuda_fp8.h>
#include <float.h>

#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kPerLane = kQuantizeBlock / kWarp;
constexpr int kWarps = kThreads / kWarp;

template <class E>
struct alignas(kPerLane * sizeof(E)) Four {
  E of[kPerLane];
};

/// The values of lane `lane` of a block of n at `x`; those beyond n stay zero.
template <bool kWide, class E>
__device__ Four<E> read(const E* x, int64_t n, int lane) {
  Four<E> out = {};
  if constexpr (kWide) {
    if (lane * kPerLane < n) out = reinterpret_cast<const Four<E>*>(x)[lane];
  } else {
    for (int j = 0; j < kPerLane; ++j)
      if (lane * kPerLane + j < n) out.of[j] = x[lane * kPerLane + j];
  }
  return out;
}
template <bool kWide, class E>
__device__ void write(E* x, int64_t n, int lane, const Four<E>& values) {
  if constexpr (kWide) {
    if (lane * kPerLane < n) reinterpret_cast<Four<E>*>(x)[lane] = values;
  } else {
    for (int j = 0; j < kPerLane; ++j)
      if (lane * kPerLane + j < n) x[lane * kPerLane + j] = values.of[j];
  }
}

/// body(first value, values in the block, number of the block), a warp each.
template <class Body>
__device__ void for_quantize_blocks(int64_t T, int64_t D, Body body) {
  const int64_t per_row = (D + kQuantizeBlock - 1) / kQuantizeBlock;
  for (int64_t b = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; b < T * per_row;
       b += int64_t{gridDim.x} * kWarps) {
    const int64_t at = b % per_row * kQuantizeBlock;
    body(b / per_row * D + at, D - at < kQuantizeBlock ? D - at : kQuantizeBlock, b);
  }
}

template <class E, bool kFp8, bool kWide>
__global__ void quantize_kernel(const E* x, int64_t T, int64_t D, unsigned char* q, float* scale) {
  const int lane = threadIdx.x % kWarp;
  const float top_code = kFp8 ? 448.0f : 127.0f;
  for_quantize_blocks(T, D, [&](int64_t first, int64_t n, int64_t block) {
    const Four<E> values = read<kWide>(x + first, n, lane);
    float largest = 0;
    bool infinite = false;
    for (int j = 0; j < kPerLane; ++j) {
      const float a = fabsf(to_float(values.of[j]));
      largest = Max::of(a, largest);
      infinite = infinite || !(a <= FLT_MAX);
    }
    largest = warp_reduce<Max>(largest);
    infinite = __any_sync(kAllLanes, infinite);
    const bool zero = infinite || largest < kQuantizeZero;
    const float inverse = zero ? 0.0f : top_code / largest;
    Four<unsigned char> codes = {};
    for (int j = 0; j < kPerLane; ++j) {
      const float v = to_float(values.of[j]) * inverse;
      if (zero)
        codes.of[j] = 0;
      else if constexpr (kFp8)
        codes.of[j] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
      else
        codes.of[j] = static_cast<unsigned char>(static_cast<signed char>(__float2int_rn(v)));
    }
    write<kWide>(q + first, n, lane, codes);
    if (lane == 0) scale[block] = infinite ? __int_as_float(0x7fc00000) : zero ? 0.0f : largest / top_code;
  });
}

template <class E, bool kFp8, bool kWide>
__global__ void dequantize_kernel(const unsigned char* q, const float* scale, int64_t T, int64_t D, E* x) {
  const int lane = threadIdx.x % kWarp;
  for_quantize_blocks(T, D, [&](int64_t first, int64_t n, int64_t block) {
    const Four<unsigned char> codes = read<kWide>(q + first, n, lane);
    Four<E> values;
    for (int j = 0; j < kPerLane; ++j) {
      float v;
      if constexpr (kFp8)
        v = __half2float(__half(__nv_cvt_fp8_to_halfraw(codes.of[j], __NV_E4M3)));
      else
        v = static_cast<float>(static_cast<signed char>(codes.of[j]));
      values.of[j] = from_float<E>(v * scale[block]);
    }
    write<kWide>(x + first, n, lane, values);
  });
}

/// Whether every block begins at a multiple of four values in both arrays.
template <class E>
bool wide(const void* x, const void* q, int64_t D) {
  const auto aligned = [](const void* p, size_t to) { return reinterpret_cast<uintptr_t>(p) % to == 0; };
  return D % kPerLane == 0 && aligned(x, kPerLane * sizeof(E)) && aligned(q, kPerLane);
}

unsigned grid(int64_t T, int64_t D) { return blocks_for(T * ((D + kQuantizeBlock - 1) / kQuantizeBlock), kWarps); }

template <class E, bool kFp8>
void quantize(cudaStream_t stream, const E* x, int64_t T, int64_t D, unsigned char* q, float* scale) {
  if (wide<E>(x, q, D))
    quantize_kernel<E, kFp8, true><<<grid(T, D), kThreads, 0, stream>>>(x, T, D, q, scale);
  else
    quantize_kernel<E, kFp8, false><<<grid(T, D), kThreads, 0, stream>>>(x, T, D, q, scale);
}
template <class E, bool kFp8>
void dequantize(cudaStream_t stream, const unsigned char* q, const float* scale, int64_t T, int64_t D, E* x) {
  if (wide<E>(x, q, D))
    dequantize_kernel<E, kFp8, true><<<grid(T, D), kThreads, 0, stream>>>(q, scale, T, D, x);
  else
    dequantize_kernel<E, kFp8, false><<<grid(T, D), kThreads, 0, stream>>>(q, scale, T, D, x);
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
