// RMSNorm: one block per row, accesses of 16 bytes. A fixed number of blocks sums the gain's gradient over rows into
// partial rows, which are then summed by column in a fixed order, so that the result does not depend on the device.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int64_t kPartials = 528;          // four blocks for each of an H100's 132 multiprocessors
constexpr int64_t kSharedBytes = 47 << 10;  // of the 48 KiB available by default; block_reduce uses the rest

template <class E, int kCount>
__global__ void forward_kernel(const Pack<E, kCount>* x_T, const Pack<E, kCount>* gain, float eps, int64_t T,
                               int64_t packs, Pack<E, kCount>* y_T, float* rstd_T) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    const Pack<E, kCount>* row = x_T + t * packs;
    float squares = 0;
#pragma unroll 4
    for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
      const Floats<E, kCount> x(load(row + p));
#pragma unroll
      for (int j = 0; j < kCount; ++j) squares += x.of[j] * x.of[j];
    }
    const float rstd = 1.0f / sqrtf(block_reduce<Sum>(squares) / static_cast<float>(packs * kCount) + eps);
    if (threadIdx.x == 0) rstd_T[t] = rstd;
    for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
      Floats<E, kCount> x(load(row + p));
      const Floats<E, kCount> weight(load(gain + p));
#pragma unroll
      for (int j = 0; j < kCount; ++j) x.of[j] = x.of[j] * rstd * weight.of[j];
      y_T[t * packs + p] = x.rounded();
    }
  }
}

/// Block b handles rows b, b + blocks, ... A thread owns columns, so that its partial sums are its own. They are in
/// shared memory if a row fits.
template <class E, int kCount>
__global__ void backward_kernel(const Pack<E, kCount>* dy_T, const Pack<E, kCount>* x_T, const Pack<E, kCount>* gain,
                                const float* rstd_T, int64_t T, int64_t packs, Pack<E, kCount>* dx_T,
                                Pack<float, kCount>* partial, bool in_shared) {
  Pack<float, kCount>* own = partial + blockIdx.x * packs;
  Pack<float, kCount>* dgain = in_shared ? dynamic_shared<Pack<float, kCount>>() : own;
  for (int64_t p = threadIdx.x; p < packs; p += kThreads) dgain[p] = {};
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    const Pack<E, kCount>* x_row = x_T + t * packs;
    const Pack<E, kCount>* dy_row = dy_T + t * packs;
    const float rstd = rstd_T[t];
    float dot = 0;
    for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
      if (t + gridDim.x < T) prefetch(x_row + gridDim.x * packs + p), prefetch(dy_row + gridDim.x * packs + p);
      const Floats<E, kCount> x(load(x_row + p)), dy(load(dy_row + p)), weight(load(gain + p));
      Pack<float, kCount> sum = load(dgain + p);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float product = dy.of[j] * x.of[j];
        dot += product * weight.of[j];
        sum.of[j] += product * rstd;
      }
      dgain[p] = sum;
    }
    const float slope = rstd * rstd * rstd * (block_reduce<Sum>(dot) / static_cast<float>(packs * kCount));
    for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
      const Floats<E, kCount> x(load(x_row + p)), dy(load(dy_row + p)), weight(load(gain + p));
      Floats<E, kCount> dx;
#pragma unroll
      for (int j = 0; j < kCount; ++j) dx.of[j] = dy.of[j] * weight.of[j] * rstd - x.of[j] * slope;
      dx_T[t * packs + p] = dx.rounded();
    }
  }
  if (!in_shared) return;
  for (int64_t p = threadIdx.x; p < packs; p += kThreads) own[p] = dgain[p];
}

__global__ void gain_kernel(const float* partial, int64_t rows, int64_t D, float* dgain) {
  const int64_t d = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const float sum = column_sum<float>(partial + d, D, d < D ? rows : 0);
  if (threadIdx.y == 0 && d < D) dgain[d] += sum;
}

}  // namespace

template <class E>
WtStatus rmsnorm_forward(void* handle, const void* x, const void* gain, float eps, int64_t T, int64_t D, void* y,
                         float* rstd) {
  with_packs<E>(D, {x, gain, y}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    launch(forward_kernel<E, kCount>, blocks_for(T), kThreads, 0, stream_of(handle), packs_of<E, kCount>(x),
           packs_of<E, kCount>(gain), eps, T, D / kCount, packs_of<E, kCount>(y), rstd);
  });
  return launched("wt_rmsnorm_forward");
}

template <class E>
WtStatus rmsnorm_backward(void* handle, const void* dy, const void* x, const void* gain, const float* rstd, int64_t T,
                          int64_t D, void* dx, float* dgain) {
  const int64_t partials = T < kPartials ? T : kPartials, row_bytes = D * static_cast<int64_t>(sizeof(float));
  const Scratch<float> partial(handle, partials * D);
  if (WtStatus bad = status_of(partial.error(), "wt_rmsnorm_backward")) return bad;
  const size_t shared_bytes = row_bytes <= kSharedBytes ? static_cast<size_t>(row_bytes) : 0;
  with_packs<E>(D, {dy, x, gain, dx}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    launch(backward_kernel<E, kCount>, static_cast<unsigned>(partials), kThreads, shared_bytes, stream_of(handle),
           packs_of<E, kCount>(dy), packs_of<E, kCount>(x), packs_of<E, kCount>(gain), rstd, T, D / kCount,
           packs_of<E, kCount>(dx), packs_of<float, kCount>(partial.data()), shared_bytes > 0);
  });
  if (WtStatus bad = launched("wt_rmsnorm_backward")) return bad;
  launch(gain_kernel, static_cast<unsigned>((D + kWarp - 1) / kWarp), dim3(kWarp, kWarp), 0, stream_of(handle),
         partial.data(), partials, D, dgain);
  return launched("wt_rmsnorm_backward");
}

template decltype(rmsnorm_forward<float>) rmsnorm_forward<float>;
template decltype(rmsnorm_forward<float>) rmsnorm_forward<__nv_bfloat16>;
template decltype(rmsnorm_backward<float>) rmsnorm_backward<float>;
template decltype(rmsnorm_backward<float>) rmsnorm_backward<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
