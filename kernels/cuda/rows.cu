// Gather, permute's gradient, and the weighted combine with its gradient: one block a row, threads along its width.
// Gradients walk the inverse index, so every output has one writer.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

template <class E>
__global__ void gather_kernel(const E* x, const int64_t* index, int64_t divisor, int64_t n, int64_t D, E* y) {
  for (int64_t j = blockIdx.x; j < n; j += gridDim.x) {
    const E* from = x + index[j] / divisor * D;
    for (int64_t d = threadIdx.x; d < D; d += kThreads) y[j * D + d] = from[d];
  }
}

template <class E>
__global__ void permute_backward_kernel(const E* dy, const int64_t* inverse, int64_t T, int64_t k, int64_t D,
                                        bool accumulate, E* dx) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    for (int64_t d = threadIdx.x; d < D; d += kThreads) {
      float sum = accumulate ? to_float(dx[t * D + d]) : 0.0f;
      for (int64_t c = 0; c < k; ++c) sum += to_float(dy[inverse[t * k + c] * D + d]);
      dx[t * D + d] = from_float<E>(sum);
    }
  }
}

template <class E>
__global__ void combine_forward_kernel(const E* rows, const int64_t* inverse, const float* weights, const E* residual,
                                       int64_t T, int64_t k, int64_t D, E* out) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    for (int64_t d = threadIdx.x; d < D; d += kThreads) {
      float sum = residual ? to_float(residual[t * D + d]) : 0.0f;
      for (int64_t c = 0; c < k; ++c) sum += weights[t * k + c] * to_float(rows[inverse[t * k + c] * D + d]);
      out[t * D + d] = from_float<E>(sum);
    }
  }
}

template <class E>
__global__ void combine_backward_kernel(const E* dout, const E* rows, const int64_t* inverse, const float* weights,
                                        int64_t N, int64_t k, int64_t D, E* drows, float* dweights) {
  for (int64_t i = blockIdx.x; i < N; i += gridDim.x) {
    const E* gradient = dout + i / k * D;
    const int64_t at = inverse[i] * D;
    const float weight = weights[i];
    float dot = 0;
    for (int64_t d = threadIdx.x; d < D; d += kThreads) {
      const float g = to_float(gradient[d]);
      dot += g * to_float(rows[at + d]);
      drows[at + d] = from_float<E>(weight * g);
    }
    dot = block_reduce<Sum>(dot);
    if (threadIdx.x == 0) dweights[i] = dot;
  }
}

}  // namespace

template <class E>
WtStatus gather(void* handle, const void* x, const int64_t* index, int64_t divisor, int64_t n, int64_t D, void* y) {
  gather_kernel<<<blocks_for(n), kThreads, 0, stream_of(handle)>>>(static_cast<const E*>(x), index, divisor, n, D,
                                                                   static_cast<E*>(y));
  return launched(divisor == 1 ? "wt_gather_rows" : "wt_permute_forward");
}

template <class E>
WtStatus permute_backward(void* handle, const void* dy, const int64_t* inverse, int64_t T, int64_t k, int64_t D,
                          bool accumulate, void* dx) {
  permute_backward_kernel<<<blocks_for(T), kThreads, 0, stream_of(handle)>>>(static_cast<const E*>(dy), inverse, T, k,
                                                                             D, accumulate, static_cast<E*>(dx));
  return launched("wt_permute_backward");
}

template <class E>
WtStatus combine_forward(void* handle, const void* rows, const int64_t* inverse, const float* weights,
                         const void* residual, int64_t T, int64_t k, int64_t D, void* out) {
  combine_forward_kernel<<<blocks_for(T), kThreads, 0, stream_of(handle)>>>(
      static_cast<const E*>(rows), inverse, weights, static_cast<const E*>(residual), T, k, D, static_cast<E*>(out));
  return launched("wt_combine_forward");
}

template <class E>
WtStatus combine_backward(void* handle, const void* dout, const void* rows, const int64_t* inverse,
                          const float* weights, int64_t T, int64_t k, int64_t D, void* drows, float* dweights) {
  combine_backward_kernel<<<blocks_for(T * k), kThreads, 0, stream_of(handle)>>>(
      static_cast<const E*>(dout), static_cast<const E*>(rows), inverse, weights, T * k, k, D, static_cast<E*>(drows),
      dweights);
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
