// Stands for CUDA's header: what the kernels use of it.
#pragma once
#include <cmath>
#include <cstdint>

struct float2;

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
using __nv_fp8x2_storage_t = uint16_t;
struct __half2_raw {  // of values that fp8 has, which fp16 has, too
  float x, y;
};
struct __half2 {
  __half2_raw raw;
  explicit __half2(__half2_raw of) : raw(of) {}
};

/// OCP E4M3: bias 7, no infinities, 448 the largest; to nearest even, beyond the largest saturated.
inline unsigned wt_e4m3_of(float x) {
  const unsigned sign = std::signbit(x) ? 0x80 : 0;
  const float size = std::fabs(x);
  if (size != size) return 0x7f;
  if (size >= 448) return sign | 0x7e;
  int exponent = 0;
  std::frexp(size, &exponent);                          // size = f * 2^exponent, f in [0.5, 1)
  const int unit = size < 0x1p-6f ? -9 : exponent - 4;  // of the last of three bits
  const unsigned steps = static_cast<unsigned>(std::nearbyint(std::ldexp(size, -unit)));  // 8 to 16 if normal
  return sign | (size < 0x1p-6f ? steps : static_cast<unsigned>(unit + 9) * 8 + steps);
}
inline float wt_e4m3_value(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15), mantissa = static_cast<int>(code & 7);
  const float size = (code & 0x7f) == 0x7f ? NAN
                     : exponent == 0       ? std::ldexp(static_cast<float>(mantissa), -9)
                                           : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code & 0x80 ? -size : size;
}
template <class Float2>
__nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(Float2 x, __nv_saturation_t, __nv_fp8_interpretation_t) {
  return static_cast<__nv_fp8x2_storage_t>(wt_e4m3_of(x.x) | wt_e4m3_of(x.y) << 8);
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t codes, __nv_fp8_interpretation_t) {
  return {wt_e4m3_value(codes & 0xff), wt_e4m3_value(codes >> 8)};
}
