// Cross-entropy with its gradient in place. One block per row reads it twice and writes one loss; a last block sums the
// losses in order.
#include <float.h>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kRowThreads = 512;  // per row: few rows in flight, so that the second read hits the L2 cache

/// Error within a few units in the last place unless the result is far below one; 0 below 2^-126.
__device__ inline float exp_of(float x) { return exp2_flushed(x * 1.4426950408889634f); }

template <class E, int kCount>
__global__ void __launch_bounds__(kRowThreads)
    cross_entropy_kernel(Pack<E, kCount>* logits_T, const int64_t* target_T, int64_t T, int64_t packs, float scale,
                         double* loss_T) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    Pack<E, kCount>* row = logits_T + t * packs;
    const int64_t target = target_T[t];
    if (target == kIgnoredTarget) {
      for (int64_t p = threadIdx.x; p < packs; p += kRowThreads) row[p] = Floats<E, kCount>{}.rounded();
      if (threadIdx.x == 0) loss_T[t] = 0;
      continue;  // uniform over the block
    }
    const bool inside = target >= 0 && target < packs * kCount;
    const float at_target = inside ? to_float(reinterpret_cast<const E*>(row)[target]) : 0.0f;
    float largest = -FLT_MAX, total = 0;  // of this thread's values: the sum of exp(x - largest)
    for_packs(row, packs, [&](int64_t, const Pack<E, kCount>& pack) {
      const Floats<E, kCount> x(pack);
      float top = x.of[0], sum = 0;
#pragma unroll
      for (int j = 1; j < kCount; ++j) top = Max::of(top, x.of[j]);
      if (top > largest) total *= exp_of(largest - top), largest = top;
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum += exp_of(x.of[j] - largest);
      total += sum;
    });
    const float top = block_reduce<Max, kRowThreads>(largest);
    total = block_reduce<Sum, kRowThreads>(total * exp_of(largest - top));
    const float factor = scale / total;
    for_packs(row, packs, [&](int64_t p, const Pack<E, kCount>& pack) {
      Floats<E, kCount> x(pack);
      const int chosen = inside && target / kCount == p ? static_cast<int>(target % kCount) : -1;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float scaled = exp_of(x.of[j] - top) * factor;
        x.of[j] = j == chosen ? scaled - scale : scaled;
      }
      row[p] = x.rounded();
    });
    if (threadIdx.x == 0)
      loss_T[t] = inside ? log(static_cast<double>(total)) + (static_cast<double>(top) - at_target) : nan("");
  }
}

__global__ void sum_losses_kernel(const double* loss_T, int64_t T, double* loss_sum) {
  __shared__ double partial[kThreads];
  double sum = 0;
  for (int64_t t = threadIdx.x; t < T; t += kThreads) sum += loss_T[t];
  partial[threadIdx.x] = sum;
  for (int width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < width) partial[threadIdx.x] += partial[threadIdx.x + width];
  }
  if (threadIdx.x == 0) *loss_sum += partial[0];
}

}  // namespace

template <class E>
WtStatus cross_entropy(void* handle, void* logits, const int64_t* target, int64_t T, int64_t V, float scale,
                       double* loss_sum) {
  const Scratch<double> losses(handle, T);
  if (WtStatus bad = status_of(losses.error(), "wt_cross_entropy_forward_backward")) return bad;
  with_packs<E>(V, {logits}, [&](auto count) {
    constexpr int kCount = decltype(count)::value;
    launch(cross_entropy_kernel<E, kCount>, blocks_for(T), kRowThreads, 0, stream_of(handle),
           packs_of<E, kCount>(logits), target, T, V / kCount, scale, losses.data());
  });
  if (WtStatus bad = launched("wt_cross_entropy_forward_backward")) return bad;
  launch(sum_losses_kernel, 1, kThreads, 0, stream_of(handle), losses.data(), T, loss_sum);
  return launched("wt_cross_entropy_forward_backward");
}

template decltype(cross_entropy<float>) cross_entropy<float>;
template decltype(cross_entropy<float>) cross_entropy<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
