// Kernels without a reduction: rope with the head split, SwiGLU, AdamW. One thread an output (or pair), neighbours on
// neighbours, grid-stride.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

#define WT_GRID_STRIDE(i, n) \
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < (n); i += int64_t{gridDim.x} * kThreads)

/// Rotates (forward) or rotates back and joins (backward) one pair (i, i + hd/2) of one head of one token a step.
/// `joined` is qkv or dqkv; q, k, v are heads-first.
template <class E, bool kForward>
__global__ void rope_kernel(E* joined, const float* cos, const float* sin, RopeShape shape, E* q, E* k, E* v) {
  const auto [B, S, H, KV, hd] = shape;
  const int64_t half = hd / 2, heads = H + 2 * KV;
  WT_GRID_STRIDE(n, B * S * heads * half) {
    const int64_t i = n % half, head = n / half % heads, token = n / half / heads, b = token / S, s = token % S;
    E* one = joined + (token * heads + head) * hd + i;
    E* other = head < H        ? q + ((b * H + head) * S + s) * hd + i
               : head < H + KV ? k + ((b * KV + head - H) * S + s) * hd + i
                               : v + ((b * KV + head - H - KV) * S + s) * hd + i;
    const E* from = kForward ? one : other;
    E* to = kForward ? other : one;
    if (head >= H + KV) {
      to[0] = from[0];
      to[half] = from[half];
    } else {
      const float c = cos[s * half + i], d = kForward ? sin[s * half + i] : -sin[s * half + i];
      const float x = to_float(from[0]), y = to_float(from[half]);
      to[0] = from_float<E>(x * c - y * d);
      to[half] = from_float<E>(y * c + x * d);
    }
  }
}

template <class E>
__global__ void swiglu_forward_kernel(const E* gate_up, int64_t R, int64_t F, E* act) {
  WT_GRID_STRIDE(n, R * F) {
    const E* gate = gate_up + n / F * 2 * F + n % F;
    const float g = to_float(gate[0]);
    act[n] = from_float<E>(g * sigmoid(g) * to_float(gate[F]));
  }
}

template <class E>
__global__ void swiglu_backward_kernel(const E* dact, const E* gate_up, int64_t R, int64_t F, E* dgate_up) {
  WT_GRID_STRIDE(n, R * F) {
    const int64_t at = n / F * 2 * F + n % F;
    const float g = to_float(gate_up[at]), u = to_float(gate_up[at + F]), d = to_float(dact[n]), s = sigmoid(g);
    dgate_up[at] = from_float<E>(d * u * s * (1.0f + g * (1.0f - s)));
    dgate_up[at + F] = from_float<E>(d * g * s);
  }
}

__global__ void adamw_kernel(float* p, float* m, float* v, const float* g, int64_t n, AdamwSettings s) {
  WT_GRID_STRIDE(i, n) {
    const float gradient = g[i] * s.grad_scale;
    const float first = m[i] + s.one_minus_beta1 * (gradient - m[i]);
    const float second = s.beta2 * v[i] + s.one_minus_beta2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * s.keep - s.step_size * first / (sqrtf(second) * s.inverse_sqrt_bc2 + s.eps);
  }
}

}  // namespace

template <class E>
WtStatus rope_forward(void* handle, const void* qkv, const float* cos, const float* sin, RopeShape shape, void* q,
                      void* k, void* v) {
  const int64_t pairs = shape.B * shape.S * (shape.H + 2 * shape.KV) * (shape.hd / 2);
  E* from = const_cast<E*>(static_cast<const E*>(qkv));  // the kernel serves both directions; forward only reads it
  rope_kernel<E, true><<<blocks_for(pairs, kThreads), kThreads, 0, stream_of(handle)>>>(
      from, cos, sin, shape, static_cast<E*>(q), static_cast<E*>(k), static_cast<E*>(v));
  return launched("wt_rope_split_forward");
}

template <class E>
WtStatus rope_backward(void* handle, const void* dq, const void* dk, const void* dv, const float* cos, const float* sin,
                       RopeShape shape, void* dqkv) {
  const int64_t pairs = shape.B * shape.S * (shape.H + 2 * shape.KV) * (shape.hd / 2);
  const auto writable = [](const void* p) { return const_cast<E*>(static_cast<const E*>(p)); };  // only read
  rope_kernel<E, false><<<blocks_for(pairs, kThreads), kThreads, 0, stream_of(handle)>>>(
      static_cast<E*>(dqkv), cos, sin, shape, writable(dq), writable(dk), writable(dv));
  return launched("wt_rope_split_backward");
}

template <class E>
WtStatus swiglu_forward(void* handle, const void* gate_up, int64_t R, int64_t F, void* act) {
  swiglu_forward_kernel<<<blocks_for(R * F, kThreads), kThreads, 0, stream_of(handle)>>>(static_cast<const E*>(gate_up),
                                                                                         R, F, static_cast<E*>(act));
  return launched("wt_swiglu_forward");
}

template <class E>
WtStatus swiglu_backward(void* handle, const void* dact, const void* gate_up, int64_t R, int64_t F, void* dgate_up) {
  swiglu_backward_kernel<<<blocks_for(R * F, kThreads), kThreads, 0, stream_of(handle)>>>(
      static_cast<const E*>(dact), static_cast<const E*>(gate_up), R, F, static_cast<E*>(dgate_up));
  return launched("wt_swiglu_backward");
}

WtStatus adamw(void* handle, float* p, float* m, float* v, const float* g, int64_t n, AdamwSettings settings) {
  adamw_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream_of(handle)>>>(p, m, v, g, n, settings);
  return launched("wt_adamw");
}

template decltype(rope_forward<float>) rope_forward<float>;
template decltype(rope_forward<float>) rope_forward<__nv_bfloat16>;
template decltype(rope_backward<float>) rope_backward<float>;
template decltype(rope_backward<float>) rope_backward<__nv_bfloat16>;
template decltype(swiglu_forward<float>) swiglu_forward<float>;
template decltype(swiglu_forward<float>) swiglu_forward<__nv_bfloat16>;
template decltype(swiglu_backward<float>) swiglu_backward<float>;
template decltype(swiglu_backward<float>) swiglu_backward<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
