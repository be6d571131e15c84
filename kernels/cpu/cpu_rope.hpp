// Rotary embedding fused with the split of (T, (H+2KV)*hd) into heads-first queries, keys and values, and its
// transpose.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

/// (a, b) -> (a cos - b sin, b cos + a sin) on one head; sign -1 rotates back.
template <class E>
WT_INLINE void rotate_head(const E* from, const float* cos, const float* sin, float sign, int64_t half, E* to) {
  for_blocks(half, [&](int64_t i, auto part) WT_LAMBDA {
    const Vec a = load(from + i, part), b = load(from + half + i, part);
    const Vec c = load(cos + i, part), s = load(sin + i, part) * sign;
    store(to + i, a * c - b * s, part);
    store(to + half + i, b * c + a * s, part);
  });
}

template <class E>
WtStatus rope_forward(void*, const void* qkv, const float* cos, const float* sin, RopeShape shape, void* q, void* k,
                      void* v) {
  const auto [B, S, H, KV, hd] = shape;
  const int64_t half = hd / 2, width = (H + 2 * KV) * hd;
  for_each_row(B * S, 2 * width * static_cast<int64_t>(sizeof(E)), [=](int64_t t) {
    const int64_t b = t / S, s = t % S;
    const E* from = static_cast<const E*>(qkv) + t * width;
    const float* c = cos + s * half;
    const float* d = sin + s * half;
    for (int64_t h = 0; h < H; ++h, from += hd)
      rotate_head(from, c, d, 1.0f, half, static_cast<E*>(q) + ((b * H + h) * S + s) * hd);
    for (int64_t h = 0; h < KV; ++h, from += hd)
      rotate_head(from, c, d, 1.0f, half, static_cast<E*>(k) + ((b * KV + h) * S + s) * hd);
    for (int64_t h = 0; h < KV; ++h, from += hd)
      memcpy(static_cast<E*>(v) + ((b * KV + h) * S + s) * hd, from, static_cast<size_t>(hd) * sizeof(E));
  });
  return WT_OK;
}

template <class E>
WtStatus rope_backward(void*, const void* dq, const void* dk, const void* dv, const float* cos, const float* sin,
                       RopeShape shape, void* dqkv) {
  const auto [B, S, H, KV, hd] = shape;
  const int64_t half = hd / 2, width = (H + 2 * KV) * hd;
  for_each_row(B * S, 2 * width * static_cast<int64_t>(sizeof(E)), [=](int64_t t) {
    const int64_t b = t / S, s = t % S;
    E* to = static_cast<E*>(dqkv) + t * width;
    const float* c = cos + s * half;
    const float* d = sin + s * half;
    for (int64_t h = 0; h < H; ++h, to += hd)
      rotate_head(static_cast<const E*>(dq) + ((b * H + h) * S + s) * hd, c, d, -1.0f, half, to);
    for (int64_t h = 0; h < KV; ++h, to += hd)
      rotate_head(static_cast<const E*>(dk) + ((b * KV + h) * S + s) * hd, c, d, -1.0f, half, to);
    for (int64_t h = 0; h < KV; ++h, to += hd)
      memcpy(to, static_cast<const E*>(dv) + ((b * KV + h) * S + s) * hd, static_cast<size_t>(hd) * sizeof(E));
  });
  return WT_OK;
}

}  // namespace
