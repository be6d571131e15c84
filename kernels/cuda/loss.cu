// Cross-entropy with its gradient in place: one block a row, a loss each row, and one block that sums them in order.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

template <class E>
__global__ void cross_entropy_kernel(E* logits_TV, const int64_t* target_T, int64_t T, int64_t V, float scale,
                                     double* loss_T) {
  for (int64_t t = blockIdx.x; t < T; t += gridDim.x) {
    E* logits = logits_TV + t * V;
    const int64_t target = target_T[t];
    if (target == kIgnoredTarget) {
      for (int64_t v = threadIdx.x; v < V; v += kThreads) logits[v] = from_float<E>(0.0f);
      if (threadIdx.x == 0) loss_T[t] = 0;
      continue;  // the same for the whole block
    }
    const bool inside = target >= 0 && target < V;
    const float at_target = inside ? to_float(logits[target]) : 0.0f;
    float largest = -INFINITY, total = 0;
    for (int64_t v = threadIdx.x; v < V; v += kThreads) largest = Max::of(largest, to_float(logits[v]));
    largest = block_reduce<Max>(largest);
    for (int64_t v = threadIdx.x; v < V; v += kThreads) total += expf(to_float(logits[v]) - largest);
    total = block_reduce<Sum>(total);
    for (int64_t v = threadIdx.x; v < V; v += kThreads) {
      const float scaled = expf(to_float(logits[v]) - largest) * (scale / total);
      logits[v] = from_float<E>(v == target ? scaled - scale : scaled);
    }
    if (threadIdx.x == 0)
      loss_T[t] = inside ? log(static_cast<double>(total)) + (static_cast<double>(largest) - at_target) : nan("");
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
  cross_entropy_kernel<<<blocks_for(T), kThreads, 0, stream_of(handle)>>>(static_cast<E*>(logits), target, T, V, scale,
                                                                          losses.data());
  if (WtStatus bad = launched("wt_cross_entropy_forward_backward")) return bad;
  sum_losses_kernel<<<1, kThreads, 0, stream_of(handle)>>>(losses.data(), T, loss_sum);
  return launched("wt_cross_entropy_forward_backward");
}

template decltype(cross_entropy<float>) cross_entropy<float>;
template decltype(cross_entropy<float>) cross_entropy<__nv_bfloat16>;

}  // namespace wt::kernels::cuda
