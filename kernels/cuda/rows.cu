// Gather, permute, the weighted combine, and their gradients, with accesses of 16 bytes. Permute follows the inverse
// index, so that a token's row is read once for all its choices. Gradients follow it too: every output has one writer.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kTogether = 4;  // choices of a token that a block handles at once

template <class P>
__global__ void gather_kernel(const P* x, const int64_t* index, int64_t n, int64_t packs, P* y) {
  for_each_row(n, [&](int64_t j) {
    for_packs(x + index[j] * packs, packs, [&](int64_t p, const P& value) { y[j * packs + p] = value; });
  });
}

__global__ void invert_kernel(const int64_t* order, int64_t n, int64_t* inverse) {
  for (int64_t j = int64_t{blockIdx.x} * kThreads + threadIdx.x; j < n; j += int64_t{gridDim.x} * kThreads)
    inverse[order[j]] = j;
}

/// y[inverse[t * k + c]] = x[t]
template <class P>
__global__ void permute_kernel(const P* x, const int64_t* __restrict__ inverse, int64_t T, int64_t k, int64_t packs,
                               P* y) {
  for_each_row(T, [&](int64_t t) {
    for_packs(x + t * packs, packs, [&](int64_t p, const P& value) {
#pragma unroll 4
      for (int64_t c = 0; c < k; ++c) y[inverse[t * k + c] * packs + p] = value;
    });
  });
}

/// out[t] = residual[t] (0 where null) + sum over c of weights[t,c] (1 where null) * rows[inverse[t * k + c]]
template <class E, int kCount>
__global__ void combine_forward_kernel(const Pack<E, kCount>* rows, const int64_t* inverse, const float* weights,
                                       const Pack<E, kCount>* residual, int64_t T, int64_t k, int64_t packs,
                                       Pack<E, kCount>* out) {
  for_each_row(T, [&](int64_t t) {
    for (int64_t p = threadIdx.x; p < packs; p += blockDim.x) {
      Floats<E, kCount> sum{};
      if (residual) sum = Floats<E, kCount>(load(residual + t * packs + p));
#pragma unroll 4
      for (int64_t c = 0; c < k; ++c) {
        const int64_t at = inverse[t * k + c];
        if (at == WT_DROPPED) continue;
        const float weight = weights ? weights[t * k + c] : 1.0f;
        const Floats<E, kCount> row(load(rows + at * packs + p));
#pragma unroll
        for (int j = 0; j < kCount; ++j) sum.of[j] += weight * row.of[j];
      }
      out[t * packs + p] = sum.rounded();
    }
  });
}

/// One block per token, kTogether choices at a time. It reads rows before it writes them, because drows may be rows.
template <class E, int kCount>
__global__ void combine_backward_kernel(const Pack<E, kCount>* dout, const Pack<E, kCount>* rows,
                                        const int64_t* inverse, const float* weights, int64_t T, int64_t k,
                                        int64_t packs, Pack<E, kCount>* drows, float* dweights) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    for (int64_t first = t * k; first < (t + 1) * k; first += kTogether) {
      const int64_t here = (t + 1) * k - first;  // number of choices from `first` on
      int64_t at[kTogether];
      bool kept[kTogether];
      float weight[kTogether], dot[kTogether] = {};
#pragma unroll
      for (int c = 0; c < kTogether; ++c) {
        kept[c] = c < here && inverse[first + c] != WT_DROPPED;
        if (kept[c]) at[c] = inverse[first + c] * packs, weight[c] = weights[first + c];
      }
      for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
        Pack<E, kCount> row[kTogether];
        const Floats<E, kCount> gradient(load(dout + t * packs + p));
#pragma unroll
        for (int c = 0; c < kTogether; ++c)
          if (kept[c]) row[c] = load(rows + at[c] + p);
#pragma unroll
        for (int c = 0; c < kTogether; ++c) {
          if (!kept[c]) continue;
          const Floats<E, kCount> value(row[c]);
          Floats<E, kCount> weighted;
#pragma unroll
          for (int j = 0; j < kCount; ++j) {
            dot[c] += gradient.of[j] * value.of[j];
            weighted.of[j] = weight[c] * gradient.of[j];
          }
          drows[at[c] + p] = weighted.rounded();
        }
      }
#pragma unroll
      for (int c = 0; c < kTogether; ++c) {
        const float whole = block_reduce<Sum>(dot[c]);
        if (threadIdx.x == 0 && c < here) dweights[first + c] = whole;
      }
    }
  }
}

template <class E>
WtStatus combine(const char* function, void* handle, const void* rows, const int64_t* inverse, const float* weights,
                 const void* residual, int64_t T, int64_t k, int64_t D, void* out) {
  with_packs<E>(D, {rows, residual, out}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const dim3 threads = row_threads(D / kCount);
    launch(combine_forward_kernel<E, kCount>, blocks_for(T, threads.y), threads, 0, stream_of(handle),
           packs_of<E, kCount>(rows), inverse, weights, packs_of<E, kCount>(residual), T, k, D / kCount,
           packs_of<E, kCount>(out));
  });
  return launched(function);
}

/// Scatters rows by the inverse of `order`. A gather by `order` would read every row k times, at distant moments.
template <class E>
WtStatus permute_forward(void* handle, const void* x, const int64_t* order, int64_t T, int64_t k, int64_t D, void* y) {
  const Scratch<int64_t> inverse(handle, T * k);
  if (WtStatus bad = status_of(inverse.error(), "wt_permute_forward")) return bad;
  launch(invert_kernel, blocks_for(T * k, kThreads), kThreads, 0, stream_of(handle), order, T * k, inverse.data());
  if (WtStatus bad = launched("wt_permute_forward")) return bad;
  with_packs<E>(D, {x, y}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const dim3 threads = row_threads(D / kCount);
    launch(permute_kernel<Pack<E, kCount>>, blocks_for(T, threads.y), threads, 0, stream_of(handle),
           packs_of<E, kCount>(x), inverse.data(), T, k, D / kCount, packs_of<E, kCount>(y));
  });
  return launched("wt_permute_forward");
}

}  // namespace

template <class E>
WtStatus gather(void* handle, const void* x, const int64_t* index, int64_t divisor, int64_t n, int64_t D, void* y) {
  if (divisor > 1) return permute_forward<E>(handle, x, index, n / divisor, divisor, D, y);
  with_packs<E>(D, {x, y}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    const dim3 threads = row_threads(D / kCount);
    launch(gather_kernel<Pack<E, kCount>>, blocks_for(n, threads.y), threads, 0, stream_of(handle),
           packs_of<E, kCount>(x), index, n, D / kCount, packs_of<E, kCount>(y));
  });
  return launched("wt_gather_rows");
}

template <class E>
WtStatus permute_backward(void* handle, const void* dy, const int64_t* inverse, int64_t T, int64_t k, int64_t D,
                          bool accumulate, void* dx) {
  return combine<E>("wt_permute_backward", handle, dy, inverse, nullptr, accumulate ? dx : nullptr, T, k, D, dx);
}

template <class E>
WtStatus combine_forward(void* handle, const void* rows, const int64_t* inverse, const float* weights,
                         const void* residual, int64_t T, int64_t k, int64_t D, void* out) {
  return combine<E>("wt_combine_forward", handle, rows, inverse, weights, residual, T, k, D, out);
}

template <class E>
WtStatus combine_backward(void* handle, const void* dout, const void* rows, const int64_t* inverse,
                          const float* weights, int64_t T, int64_t k, int64_t D, void* drows, float* dweights) {
  with_packs<E>(D, {dout, rows, drows}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    launch(combine_backward_kernel<E, kCount>, blocks_for(T), kThreads, 0, stream_of(handle), packs_of<E, kCount>(dout),
           packs_of<E, kCount>(rows), inverse, weights, T, k, D / kCount, packs_of<E, kCount>(drows), dweights);
  });
  return launched("wt_combine_backward");
}

template decltype(gather<float>) gather<float>;
template decltype(gather<float>) gather<__nv_bfloat16>;
template decltype(permute_backward<float>) permute_backward<float>;
template decltype(permute_backward<float>) permute_backward<__nv_bfloat16>;
template decltype(combine_forward<float>) combine_forward<float>;
template decltype(combine_forward<float>) combine_forward<__nv_bfloat16>;
template decltype(combine_backward<float>) combine_backward<float>;
template decltype(combine_backward<float>) combine_backward<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
