// One register of fp32 lanes as a generic vector: 16, 8 or 4 lanes, by the flags of the including file. Never wider
// than a register, because GCC 12 splits comparisons of wider vectors into scalars. Everything in kernels/cpu has
// internal linkage: otherwise the linker could keep one instruction set's copy of a function for another. For the same
// reason no library header with inline code is included.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>  // its functions are all forced inline: none can be the copy that the linker keeps
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/backend.hpp"
#include "kernels/threads.hpp"

#define WT_INLINE inline __attribute__((always_inline))  // no calls: the ABI of vector arguments differs between sets
#define WT_LAMBDA mutable __attribute__((always_inline))

namespace {

using namespace wt::kernels;

#if defined(__AVX512F__)
constexpr int64_t kLanes = 16;
#elif defined(__AVX2__)
constexpr int64_t kLanes = 8;
#else
constexpr int64_t kLanes = 4;
#endif
typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef int32_t VecI __attribute__((vector_size(kLanes * 4)));
typedef uint32_t VecU __attribute__((vector_size(kLanes * 4)));
typedef uint16_t VecH __attribute__((vector_size(kLanes * 2)));

// The compiler's conversion between 16 and 32 bits takes four shuffles; the hardware has one instruction. The masked
// forms avoid GCC 12's warning about undefined sources.
WT_INLINE VecU widen(VecH h) {
#if defined(__AVX512F__)
  return (VecU)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)h);
#elif defined(__AVX2__)
  return (VecU)_mm256_cvtepu16_epi32((__m128i)h);
#else
  return __builtin_convertvector(h, VecU);
#endif
}
WT_INLINE VecH narrow(VecU u) {  // requires values below 2^16
#if defined(__AVX512F__)
  return (VecH)_mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)u);
#elif defined(__AVX2__)
  return (VecH)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)u), _mm256_extracti128_si256((__m256i)u, 1));
#else
  return __builtin_convertvector(u, VecH);
#endif
}

struct Bf16 {
  uint16_t bits;
};

WT_INLINE Vec splat(float x) { return Vec{} + x; }

WT_INLINE Vec load(const float* p) {
  Vec v;
  memcpy(&v, p, sizeof v);
  return v;
}
WT_INLINE Vec load(const Bf16* p) {
  VecH h;
  memcpy(&h, p, sizeof h);
  return (Vec)(widen(h) << 16);
}
WT_INLINE void store(float* p, Vec v) { memcpy(p, &v, sizeof v); }
WT_INLINE void store(Bf16* p, Vec v) {
  const VecU u = (VecU)v;
  const VecU rounded = u + 0x7fffu + ((u >> 16) & 1u);  // to nearest even; a carry into the exponent is correct
  const VecU nan = u | 0x400000u;                       // quiet NaN: rounding could turn a NaN into infinity
  const VecH h = narrow(((v == v) ? rounded : nan) >> 16);
  memcpy(p, &h, sizeof h);
}

WT_INLINE float load_one(const float* p) { return *p; }
WT_INLINE float load_one(const Bf16* p) {
  const uint32_t u = static_cast<uint32_t>(p->bits) << 16;
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/// A full block of lanes, or the last `count` < kLanes elements of a row. Missing lanes load as zero and are not
/// stored.
struct Full {};
struct Tail {
  int64_t count;
};
template <class E>
WT_INLINE Vec load(const E* p, Full) {
  return load(p);
}
template <class E>
WT_INLINE void store(E* p, Vec v, Full) {
  store(p, v);
}
template <class E>
WT_INLINE Vec load(const E* p, Tail tail) {
  E lanes[kLanes] = {};
  for (int64_t i = 0; i < tail.count; ++i) lanes[i] = p[i];
  return load(lanes);
}
template <class E>
WT_INLINE void store(E* p, Vec v, Tail tail) {
  E lanes[kLanes];
  store(lanes, v);
  for (int64_t i = 0; i < tail.count; ++i) p[i] = lanes[i];
}

/// Prefetches for the next row. The hardware prefetcher stops at the end of a page, and a row is about a page long.
template <class E>
WT_INLINE void fetch(const E* p) {
  __builtin_prefetch(p);
}

/// body(offset, Full or Tail) over n elements.
template <class Body>
WT_INLINE void for_blocks(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Full{});
  if (i < n) body(i, Tail{n - i});
}

// Stores that bypass the caches. A plain store first reads the line that it overwrites: a third of SwiGLU's traffic.
WT_INLINE void stream(float* p, Vec v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX2__)
  _mm256_stream_ps(p, (__m256)v);
#elif defined(__SSE2__)
  _mm_stream_ps(p, (__m128)v);
#else
  store(p, v);
#endif
}
WT_INLINE void stream(Bf16* p, Vec v) {
  Bf16 half[kLanes];
  store(half, v);
#if defined(__AVX512F__)
  __m256i bits;
  memcpy(&bits, half, sizeof bits);
  _mm256_stream_si256((__m256i*)p, bits);
#elif defined(__AVX2__)
  __m128i bits;
  memcpy(&bits, half, sizeof bits);
  _mm_stream_si128((__m128i*)p, bits);
#elif defined(__SSE2__)
  long long bits;
  memcpy(&bits, half, sizeof bits);
  _mm_stream_si64((long long*)p, bits);
#else
  store(p, v);
#endif
}

/// Whether to stream an output (rows, D): it is aligned and larger than the caches. Not for outputs that overwrite an
/// input, whose lines are already cached.
template <class E>
WT_INLINE bool streams(const void* out, int64_t rows, int64_t D) {
  constexpr int64_t kLarger = 32 << 20;  // more than one or two cores' share of the last-level cache
  const int64_t row_bytes = D * static_cast<int64_t>(sizeof(E));
  return rows * row_bytes >= kLarger && row_bytes % 64 == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0;
}
template <class E>
WT_INLINE void put(E* p, Vec v, Full part, bool streamed) {
  if (streamed)
    stream(p, v);
  else
    store(p, v, part);
}
template <class E>
WT_INLINE void put(E* p, Vec v, Tail part, bool) {
  store(p, v, part);
}
/// Makes streamed stores visible to other cores.
WT_INLINE void end_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// body(row) for every row, on several threads; see run_rows().
template <class Body>
inline void for_each_row(int64_t rows, int64_t row_bytes, Body body) {
  const auto run = [](void* context, int64_t begin, int64_t end) {
    const Body& one = *static_cast<const Body*>(context);
    for (int64_t row = begin; row < end; ++row) one(row);
    end_streams();
  };
  run_rows(rows, row_bytes, run, &body);
}

// Returns b where either is NaN, like the hardware's instruction; other definitions compile to two.
WT_INLINE Vec max(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}
WT_INLINE Vec min(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return a < b ? a : b;
#endif
}
/// Lanes beyond the tail become `fill`.
WT_INLINE Vec masked(Vec v, Full, float) { return v; }
WT_INLINE Vec masked(Vec v, Tail tail, float fill) {
  constexpr int32_t kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  VecI lane;
  memcpy(&lane, kNumbers, sizeof lane);
  return lane < static_cast<int32_t>(tail.count) ? v : splat(fill);
}

WT_INLINE float sum_lanes(Vec v) {
  float s[kLanes];
  memcpy(s, &v, sizeof s);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) s[i] += s[i + width];
  }
  return s[0];
}
WT_INLINE float max_lanes(Vec v) {
  float s[kLanes];
  memcpy(s, &v, sizeof s);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) s[i] = s[i] > s[i + width] ? s[i] : s[i + width];
  }
  return s[0];
}

/// Added to |x| < 2^22, it leaves the nearest integer in the low mantissa bits.
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23

/// p 2^n for n = shifted - kRounder.
WT_INLINE Vec times_power_of_two(Vec p, Vec shifted) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_scalef_ps(0xffff, (__m512)p, (__m512)(shifted - kRounder));
#else
  const VecI n = (VecI)shifted - (VecI)splat(kRounder), half = n >> 1;  // two factors: n ranges from -151 to 128
  return p * (Vec)((half + 127) << 23) * (Vec)((n - half + 127) << 23);
#endif
}

/// e^x within 2 units in the last place of fp32 (at most 1.14 over every 509th x, tests/unit/kernel_exp.cpp). 0 and
/// infinity beyond fp32's range, NaN for NaN. x = n ln2 + r with |r| <= ln2/2; e^r by its Taylor series up to r^7
/// (remainder 5e-9).
WT_INLINE Vec exp(Vec x) {
  x = max(splat(-105.0f), min(splat(89.0f), x));
  const Vec shifted = x * 1.44269504f + kRounder;
  const Vec nf = shifted - kRounder;
  const Vec r = (x - nf * 0.693359375f) - nf * -2.12194440e-4f;  // ln2 in two parts, the first exact in 9 bits
  Vec p = splat(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return times_power_of_two(p, shifted);
}

/// 1 / (1 + e^-x).
WT_INLINE Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }

/// Sigmoid with relative error below 2e-5, without a division: for results stored in bf16 (half a unit is 2e-3). 0
/// below -87 and 1 above 17, so that x (1 - s) stays correct for large x. e^r by the minimax polynomial of degree 4 on
/// |r| <= ln2/2 (relative error 2.6e-6). The inverse starts at an estimate from exponents (5 % off), followed by two
/// Newton steps, each of which squares the error.
WT_INLINE Vec quick_sigmoid(Vec x) {
  const Vec most = min(splat(105.0f), x);
  const Vec shifted = most * -1.44269504f + kRounder;
  const Vec r = most + (shifted - kRounder) * 0.693147181f;  // negated
  Vec p = splat(0.0414585667f);
  p = p * r - 0.167909319f;
  p = p * r + 0.500043604f;
  p = p * r - 0.999963390f;
  p = p * r + 0.999999261f;
  const Vec y = 1.0f + times_power_of_two(p, shifted);
  Vec inverse = (Vec)(0x7ef31000u - (VecU)y);
  inverse += inverse * (1.0f - y * inverse);
  inverse += inverse * (1.0f - y * inverse);
  inverse = x > 17.0f ? splat(1.0f) : inverse;
  return x < -87.0f ? Vec{} : inverse;  // below, y's exponent is too large for the estimate
}
/// Sigmoid as exact as type E can store it.
template <class E>
WT_INLINE Vec sigmoid_for(Vec x) {
  return sigmoid(x);
}
template <>
WT_INLINE Vec sigmoid_for<Bf16>(Vec x) {
  return quick_sigmoid(x);
}

}  // namespace
