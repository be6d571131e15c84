// Block quantisation: one byte a value and one fp32 scale per 128 values of a row; int8, or fp8 E4M3.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

typedef uint8_t VecB __attribute__((vector_size(kLanes)));

WT_INLINE VecU bytes_of(const uint8_t* p, Full) {
  VecB bytes;
  memcpy(&bytes, p, sizeof bytes);
#if defined(__AVX512F__)  // one instruction where the compiler emits several, as in vec.hpp
  return (VecU)_mm512_maskz_cvtepu8_epi32(0xffff, (__m128i)bytes);
#elif defined(__AVX2__)
  return (VecU)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)&bytes));
#else
  return __builtin_convertvector(bytes, VecU);
#endif
}
WT_INLINE VecU bytes_of(const uint8_t* p, Tail tail) {
  uint8_t lanes[kLanes] = {};
  for (int64_t i = 0; i < tail.count; ++i) lanes[i] = p[i];
  return bytes_of(lanes, Full{});
}
WT_INLINE void store_bytes(uint8_t* p, VecU code, Full) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)code);
#elif defined(__AVX2__)
  const __m128i half = (__m128i)narrow(code), bytes = _mm_packus_epi16(half, half);
#else
  const VecB bytes = __builtin_convertvector(code, VecB);
#endif
  memcpy(p, &bytes, sizeof(VecB));
}
WT_INLINE void store_bytes(uint8_t* p, VecU code, Tail tail) {
  uint8_t lanes[kLanes];
  store_bytes(lanes, code, Full{});
  for (int64_t i = 0; i < tail.count; ++i) p[i] = lanes[i];
}

WT_INLINE Vec magnitude(Vec v) { return (Vec)((VecU)v & 0x7fffffffu); }

WT_INLINE int64_t blocks_of(int64_t D) { return (D + kQuantizeBlock - 1) / kQuantizeBlock; }

struct Int8 {
  static constexpr float kLargest = 127;
  static WT_INLINE VecU encode(Vec v) {  // |v| <= 127: adding 1.5 * 2^23 rounds to nearest even, into the low byte
    return (VecU)(v + 12582912.0f) & 0xffu;
  }
  static WT_INLINE Vec decode(VecU code) { return __builtin_convertvector((VecI)(code << 24) >> 24, Vec); }
};

/// No infinity; 0x7f is NaN and never produced. Exponent bias 7; subnormal below 2^-6, in steps of 2^-9.
struct Fp8 {
  static constexpr float kLargest = 448;
  static WT_INLINE VecU encode(Vec v) {
    const VecU sign = ((VecU)v >> 24) & 0x80u, u = (VecU)magnitude(v);
    const VecU normal = ((u + 0x7ffffu + ((u >> 20) & 1u)) >> 20) - (120u << 3);
    const VecU small = (VecU)((Vec)u + 16384.0f) - 0x46800000u;  // at 2^14, fp32 has steps of 2^-9
    return sign | (u < 0x3c800000u ? small : normal);            // 2^-6
  }
  static WT_INLINE Vec decode(VecU code) {  // avoids fp32 subnormals, which cost Intel a hundred cycles each
    const VecU u = (code & 0x7fu) << 20;
    const VecU normal = u + (120u << 23);
    const Vec small = (Vec)(u + (121u << 23)) - 0.015625f;  // one binade up, minus the implicit leading one
    return (Vec)((u < 0x800000u ? (VecU)small : normal) | ((code & 0x80u) << 24));
  }
};

/// Bits of the largest magnitude in fp32. Magnitudes order like their bits; infinity and NaN are above all numbers.
WT_INLINE int32_t largest_magnitude(const float* p, int64_t n) {
  VecI largest = {};
  for_blocks(n, [&](int64_t i, auto part) WT_LAMBDA {
    const VecI a = (VecI)magnitude(load(p + i, part));
    largest = a > largest ? a : largest;
  });
  int32_t top = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) top = largest[lane] > top ? largest[lane] : top;
  return top;
}
WT_INLINE int32_t largest_magnitude(const Bf16* p, int64_t n) {  // 16-bit integers: twice as many per register
  typedef int16_t VecS __attribute__((vector_size(kLanes * 4)));
  VecS largest = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    VecS a;
    memcpy(&a, p + i, sizeof a);
    a &= 0x7fff;
    largest = a > largest ? a : largest;
  }
  int16_t top = 0;
  for (int64_t lane = 0; lane < 2 * kLanes; ++lane) top = largest[lane] > top ? largest[lane] : top;
  for (; i < n; ++i) {
    const int16_t a = static_cast<int16_t>(p[i].bits & 0x7fff);
    top = a > top ? a : top;
  }
  return int32_t{top} << 16;
}

template <class E, class Code>
WtStatus quantize_as(const E* x, int64_t T, int64_t D, uint8_t* q, float* scales) {
  for_each_row(T, D * static_cast<int64_t>(sizeof(E) + 1), [=](int64_t t) {
    float* scale = scales + t * blocks_of(D);
    for (int64_t at = 0; at < D; at += kQuantizeBlock, ++scale) {
      const int64_t n = D - at < kQuantizeBlock ? D - at : kQuantizeBlock;
      const E* from = x + t * D + at;
      uint8_t* to = q + t * D + at;
      const int32_t top_bits = largest_magnitude(from, n);
      const bool finite = top_bits < 0x7f800000;
      float top;
      memcpy(&top, &top_bits, sizeof top);
      if (!finite || top < kQuantizeZero) {
        *scale = finite ? 0.0f : __builtin_nanf("");
        memset(to, 0, static_cast<size_t>(n));
        continue;
      }
      *scale = top / Code::kLargest;
      const float inverse = Code::kLargest / top;
      for_blocks(n, [&](int64_t i, auto part) WT_LAMBDA {
        fetch(from + i + D);
        store_bytes(to + i, Code::encode(load(from + i, part) * inverse), part);
      });
    }
  });
  return WT_OK;
}

template <class E, class Code>
WtStatus dequantize_as(const uint8_t* q, const float* scales, int64_t T, int64_t D, E* x) {
  const bool streamed = streams<E>(x, T, D);
  for_each_row(T, D * static_cast<int64_t>(sizeof(E) + 1), [=](int64_t t) {
    const float* scale = scales + t * blocks_of(D);
    for (int64_t at = 0; at < D; at += kQuantizeBlock, ++scale) {
      const int64_t n = D - at < kQuantizeBlock ? D - at : kQuantizeBlock, from = t * D + at;
      for_blocks(n, [&](int64_t i, auto part) WT_LAMBDA {
        fetch(q + from + i + D);
        put(x + from + i, Code::decode(bytes_of(q + from + i, part)) * *scale, part, streamed);
      });
    }
  });
  return WT_OK;
}

template <class E>
WtStatus quantize_blocks(void*, const void* x, bool fp8, int64_t T, int64_t D, void* q, float* scale) {
  const E* from = static_cast<const E*>(x);
  uint8_t* to = static_cast<uint8_t*>(q);
  return fp8 ? quantize_as<E, Fp8>(from, T, D, to, scale) : quantize_as<E, Int8>(from, T, D, to, scale);
}

template <class E>
WtStatus dequantize_blocks(void*, const void* q, const float* scale, bool fp8, int64_t T, int64_t D, void* x) {
  const uint8_t* from = static_cast<const uint8_t*>(q);
  E* to = static_cast<E*>(x);
  return fp8 ? dequantize_as<E, Fp8>(from, scale, T, D, to) : dequantize_as<E, Int8>(from, scale, T, D, to);
}

}  // namespace
