// Kernels without a reduction: rope with the split into heads, SwiGLU, AdamW. Accesses have 16 bytes. Rope and SwiGLU
// work by rows, so that their indices need no division.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int64_t kMostInY = 65535;  // the grid's limit in y

/// Splits and rotates (forward), or rotates back and joins (backward). A block handles a token: threadIdx.x runs along
/// half a head, threadIdx.y over heads. `joined` is qkv or dqkv; q, k, v are heads-first.
template <class E, int kCount, bool kForward>
__global__ void rope_kernel(Pack<E, kCount>* joined, const Pack<float, kCount>* cos, const Pack<float, kCount>* sin,
                            RopeShape shape, Pack<E, kCount>* q, Pack<E, kCount>* k, Pack<E, kCount>* v) {
  const auto [B, S, H, KV, hd] = shape;
  const int64_t half = hd / 2 / kCount, heads = H + 2 * KV, s = blockIdx.x;
  for (int64_t b = blockIdx.y; b < B; b += gridDim.y) {
    for (int64_t i = threadIdx.x; i < half; i += blockDim.x) {
      const Pack<float, kCount> c = load(cos + s * half + i), d = load(sin + s * half + i);
      for (int64_t head = threadIdx.y; head < heads; head += blockDim.y) {
        Pack<E, kCount>* one = joined + ((b * S + s) * heads + head) * 2 * half + i;
        Pack<E, kCount>* other = head < H        ? q + ((b * H + head) * S + s) * 2 * half + i
                                 : head < H + KV ? k + ((b * KV + head - H) * S + s) * 2 * half + i
                                                 : v + ((b * KV + head - H - KV) * S + s) * 2 * half + i;
        const Pack<E, kCount>* from = kForward ? one : other;
        Pack<E, kCount>* to = kForward ? other : one;
        Pack<E, kCount> first = load(from), second = load(from + half);
        if (head < H + KV) {
          Floats<E, kCount> x(first), y(second);
#pragma unroll
          for (int j = 0; j < kCount; ++j) {
            const float sine = kForward ? d.of[j] : -d.of[j], before = x.of[j];
            x.of[j] = before * c.of[j] - y.of[j] * sine;
            y.of[j] = y.of[j] * c.of[j] + before * sine;
          }
          first = x.rounded(), second = y.rounded();
        }
        to[0] = first;
        to[half] = second;
      }
    }
  }
}

template <class E, int kCount>
__global__ void swiglu_forward_kernel(const Pack<E, kCount>* gate_up, int64_t R, int64_t packs, Pack<E, kCount>* act) {
  for_each_row(R, [&](int64_t r) {
    const Pack<E, kCount>* row = gate_up + r * 2 * packs;
    for (int64_t p = threadIdx.x; p < packs; p += blockDim.x) {
      const Floats<E, kCount> gate(load(row + p)), up(load(row + packs + p));
      Floats<E, kCount> out;
#pragma unroll
      for (int j = 0; j < kCount; ++j) out.of[j] = gate.of[j] * sigmoid(gate.of[j]) * up.of[j];
      act[r * packs + p] = out.rounded();
    }
  });
}

template <class E, int kCount>
__global__ void swiglu_backward_kernel(const Pack<E, kCount>* dact, const Pack<E, kCount>* gate_up, int64_t R,
                                       int64_t packs, Pack<E, kCount>* dgate_up) {
  for_each_row(R, [&](int64_t r) {
    const int64_t row = r * 2 * packs;
    for (int64_t p = threadIdx.x; p < packs; p += blockDim.x) {
      const Floats<E, kCount> d(load(dact + r * packs + p)), gate(load(gate_up + row + p)),
          up(load(gate_up + row + packs + p));
      Floats<E, kCount> dgate, dup;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float g = gate.of[j], s = sigmoid(g);
        dgate.of[j] = d.of[j] * up.of[j] * s * (1.0f + g * (1.0f - s));
        dup.of[j] = d.of[j] * g * s;
      }
      dgate_up[row + p] = dgate.rounded();
      dgate_up[row + packs + p] = dup.rounded();
    }
  });
}

template <int kCount>
__global__ void adamw_kernel(Pack<float, kCount>* p, Pack<float, kCount>* m, Pack<float, kCount>* v,
                             const Pack<float, kCount>* g, int64_t packs, AdamwSettings s) {
  const int64_t first_pack = int64_t{blockIdx.x} * kThreads + threadIdx.x, stride = int64_t{gridDim.x} * kThreads;
#pragma unroll 1
  for (int64_t at = first_pack; at < packs; at += stride) {
    Pack<float, kCount> weight = load(p + at), first = load(m + at), second = load(v + at);
    const Pack<float, kCount> gradients = load(g + at);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float gradient = gradients.of[j] * s.grad_scale;
      first.of[j] = first.of[j] + s.one_minus_beta1 * (gradient - first.of[j]);
      second.of[j] = s.beta2 * second.of[j] + s.one_minus_beta2 * gradient * gradient;
      weight.of[j] =
          weight.of[j] * s.keep - s.step_size * first.of[j] / (sqrtf(second.of[j]) * s.inverse_sqrt_bc2 + s.eps);
    }
    m[at] = first, v[at] = second, p[at] = weight;
  }
}

template <int kCount>
__global__ void lion_kernel(Pack<float, kCount>* p, Pack<float, kCount>* m, const Pack<float, kCount>* g, int64_t packs,
                            LionSettings s) {
  const int64_t first_pack = int64_t{blockIdx.x} * kThreads + threadIdx.x, stride = int64_t{gridDim.x} * kThreads;
#pragma unroll 1
  for (int64_t at = first_pack; at < packs; at += stride) {
    Pack<float, kCount> weight = load(p + at), moment = load(m + at);
    const Pack<float, kCount> gradients = load(g + at);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float gradient = gradients.of[j] * s.grad_scale, old = moment.of[j];
      const float update = old + s.one_minus_beta1 * (gradient - old);
      moment.of[j] = old + s.one_minus_beta2 * (gradient - old);
      weight.of[j] = weight.of[j] * s.keep - (update > 0 ? s.step_size : update < 0 ? -s.step_size : 0.0f);
    }
    m[at] = moment, p[at] = weight;
  }
}

/// One kernel serves both directions, so it takes mutable pointers; its inputs are const in the API.
template <class E, bool kForward>
void rope(void* handle, const void* joined, const float* cos, const float* sin, RopeShape shape, const void* q,
          const void* k, const void* v) {
  const int64_t half = shape.hd / 2;
  with_packs<E>(half, {joined, cos, sin, q, k, v}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const auto packs = [](const void* array) { return packs_of<E, kCount>(const_cast<void*>(array)); };
    const dim3 grid(static_cast<unsigned>(shape.S), static_cast<unsigned>(shape.B < kMostInY ? shape.B : kMostInY));
    launch(rope_kernel<E, kCount, kForward>, grid, row_threads(half / kCount), 0, stream_of(handle), packs(joined),
           packs_of<float, kCount>(cos), packs_of<float, kCount>(sin), shape, packs(q), packs(k), packs(v));
  });
}

}  // namespace

template <class E>
WtStatus rope_forward(void* handle, const void* qkv, const float* cos, const float* sin, RopeShape shape, void* q,
                      void* k, void* v) {
  rope<E, true>(handle, qkv, cos, sin, shape, q, k, v);
  return launched("wt_rope_split_forward");
}

template <class E>
WtStatus rope_backward(void* handle, const void* dq, const void* dk, const void* dv, const float* cos, const float* sin,
                       RopeShape shape, void* dqkv) {
  rope<E, false>(handle, dqkv, cos, sin, shape, dq, dk, dv);
  return launched("wt_rope_split_backward");
}

template <class E>
WtStatus swiglu_forward(void* handle, const void* gate_up, int64_t R, int64_t F, void* act) {
  with_packs<E>(F, {gate_up, act}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const dim3 threads = row_threads(F / kCount);
    launch(swiglu_forward_kernel<E, kCount>, blocks_for(R, threads.y), threads, 0, stream_of(handle),
           packs_of<E, kCount>(gate_up), R, F / kCount, packs_of<E, kCount>(act));
  });
  return launched("wt_swiglu_forward");
}

template <class E>
WtStatus swiglu_backward(void* handle, const void* dact, const void* gate_up, int64_t R, int64_t F, void* dgate_up) {
  with_packs<E>(F, {dact, gate_up, dgate_up}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const dim3 threads = row_threads(F / kCount);
    launch(swiglu_backward_kernel<E, kCount>, blocks_for(R, threads.y), threads, 0, stream_of(handle),
           packs_of<E, kCount>(dact), packs_of<E, kCount>(gate_up), R, F / kCount, packs_of<E, kCount>(dgate_up));
  });
  return launched("wt_swiglu_backward");
}

WtStatus adamw(void* handle, float* p, float* m, float* v, const float* g, int64_t n, AdamwSettings settings) {
  with_packs<float>(n, {p, m, v, g}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const auto packs = [](float* array) { return packs_of<float, kCount>(static_cast<void*>(array)); };
    launch(adamw_kernel<kCount>, blocks_for(n / kCount, kThreads), kThreads, 0, stream_of(handle), packs(p), packs(m),
           packs(v), packs_of<float, kCount>(static_cast<const void*>(g)), n / kCount, settings);
  });
  return launched("wt_adamw");
}

WtStatus lion(void* handle, float* p, float* m, const float* g, int64_t n, LionSettings settings) {
  with_packs<float>(n, {p, m, g}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const auto packs = [](float* array) { return packs_of<float, kCount>(static_cast<void*>(array)); };
    launch(lion_kernel<kCount>, blocks_for(n / kCount, kThreads), kThreads, 0, stream_of(handle), packs(p), packs(m),
           packs_of<float, kCount>(static_cast<const void*>(g)), n / kCount, settings);
  });
  return launched("wt_lion");
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
