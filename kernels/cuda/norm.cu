// RMSNorm: one block a row. The gain's gradient is summed over rows by a fixed number of blocks into partial rows, and
// those by column in block order, so that it does not depend on the device.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int64_t kPartials = 264;  // two blocks for each of an H100's 132 multiprocessors

template <class E>
__global__ void forward_kernel(const E* x_TD, const E* gain, float eps, int64_t T, int64_t D, E* y_TD, float* rstd_T) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    const E* x = x_TD + t * D;
    float squares = 0;
    for (int64_t d = threadIdx.x; d < D; d += kThreads) squares += to_float(x[d]) * to_float(x[d]);
    const float rstd = 1.0f / sqrtf(block_reduce<Sum>(squares) / static_cast<float>(D) + eps);
    if (threadIdx.x == 0) rstd_T[t] = rstd;
    for (int64_t d = threadIdx.x; d < D; d += kThreads)
      y_TD[t * D + d] = from_float<E>(to_float(x[d]) * rstd * to_float(gain[d]));
  }
}

/// Block b takes rows b, b + blocks, ...; a thread owns columns, so its partial sums need no other's.
template <class E>
__global__ void backward_kernel(const E* dy_TD, const E* x_TD, const E* gain, const float* rstd_T, int64_t T, int64_t D,
                                E* dx_TD, float* partial) {
  float* dgain = partial + blockIdx.x * D;
  for (int64_t d = threadIdx.x; d < D; d += kThreads) dgain[d] = 0;
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    const E* x = x_TD + t * D;
    const E* dy = dy_TD + t * D;
    const float rstd = rstd_T[t];
    float dot = 0;
    for (int64_t d = threadIdx.x; d < D; d += kThreads) {
      const float product = to_float(dy[d]) * to_float(x[d]);
      dot += product * to_float(gain[d]);
      dgain[d] += product * rstd;
    }
    const float slope = rstd * rstd * rstd * (block_reduce<Sum>(dot) / static_cast<float>(D));
    for (int64_t d = threadIdx.x; d < D; d += kThreads)
      dx_TD[t * D + d] = from_float<E>(to_float(dy[d]) * to_float(gain[d]) * rstd - to_float(x[d]) * slope);
  }
}

__global__ void column_sum_kernel(const float* partial, int64_t rows, int64_t D, float* dgain) {
  const int64_t d = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (d >= D) return;
  float sum = 0;
  for (int64_t r = 0; r < rows; ++r) sum += partial[r * D + d];
  dgain[d] += sum;
}

}  // namespace

template <class E>
WtStatus rmsnorm_forward(void* handle, const void* x, const void* gain, float eps, int64_t T, int64_t D, void* y,
                         float* rstd) {
  forward_kernel<<<blocks_for(T), kThreads, 0, stream_of(handle)>>>(
      static_cast<const E*>(x), static_cast<const E*>(gain), eps, T, D, static_cast<E*>(y), rstd);
  return launched("wt_rmsnorm_forward");
}

template <class E>
WtStatus rmsnorm_backward(void* handle, const void* dy, const void* x, const void* gain, const float* rstd, int64_t T,
                          int64_t D, void* dx, float* dgain) {
  const int64_t partials = T < kPartials ? T : kPartials;
  const Scratch<float> partial(handle, partials * D);
  if (WtStatus bad = status_of(partial.error(), "wt_rmsnorm_backward")) return bad;
  backward_kernel<<<static_cast<unsigned>(partials), kThreads, 0, stream_of(handle)>>>(
      static_cast<const E*>(dy), static_cast<const E*>(x), static_cast<const E*>(gain), rstd, T, D, static_cast<E*>(dx),
      partial.data());
  if (WtStatus bad = launched("wt_rmsnorm_backward")) return bad;
  column_sum_kernel<<<static_cast<unsigned>((D + kThreads - 1) / kThreads), kThreads, 0, stream_of(handle)>>>(
      partial.data(), partials, D, dgain);
  return launched("wt_rmsnorm_backward");
}

template decltype(rmsnorm_forward<float>) rmsnorm_forward<float>;
template decltype(rmsnorm_forward<float>) rmsnorm_forward<__nv_bfloat16>;
template decltype(rmsnorm_backward<float>) rmsnorm_backward<float>;
template decltype(rmsnorm_backward<float>) rmsnorm_backward<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
