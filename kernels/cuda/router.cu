// Router: one warp a token, experts dealt to lanes. The only atomics are integer counts, whose order cannot show.
#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;

/// Of a candidate (value, expert) and another: the larger value, then the lower expert; a NaN never wins by value.
__device__ inline void take_better(float& value, int64_t& expert, float other_value, int64_t other_expert) {
  if (other_value > value || (!(value > other_value) && other_expert < expert)) {
    value = other_value;
    expert = other_expert;
  }
}

__global__ void forward_kernel(const float* logits_TE, int64_t T, int64_t E, int64_t k, bool normalize, float* probs_TE,
                               float* weights_Tk, int64_t* index_Tk, unsigned long long* counts) {
  const int lane = threadIdx.x % kWarp;
  for (int64_t t = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; t < T; t += int64_t{gridDim.x} * kWarps) {
    const float* logits = logits_TE + t * E;
    float* probs = probs_TE + t * E;
    float largest = -INFINITY, total = 0;
    for (int64_t e = lane; e < E; e += kWarp) largest = Max::of(largest, logits[e]);
    largest = warp_reduce<Max>(largest);
    for (int64_t e = lane; e < E; e += kWarp) total += probs[e] = expf(logits[e] - largest);
    const float inverse_total = 1.0f / warp_reduce<Sum>(total);
    for (int64_t e = lane; e < E; e += kWarp) probs[e] *= inverse_total;
    int64_t* index = index_Tk + t * k;
    float sum = 0;
    for (int64_t c = 0; c < k; ++c) {
      float value = -1;
      int64_t expert = INT64_MAX;
      for (int64_t e = lane; e < E; e += kWarp) {
        bool taken = false;
        for (int64_t earlier = 0; earlier < c; ++earlier) taken |= index[earlier] == e;
        if (!taken) take_better(value, expert, probs[e], e);
      }
      for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        const float other_value = __shfl_xor_sync(kAllLanes, value, offset);
        take_better(value, expert, other_value, __shfl_xor_sync(kAllLanes, expert, offset));
      }
      sum += value;
      if (lane == 0) {
        index[c] = expert;
        weights_Tk[t * k + c] = value;
        atomicAdd(&counts[expert], 1ull);
      }
      __syncwarp();  // the next choice reads index[c] in every lane
    }
    for (int64_t c = lane; normalize && c < k; c += kWarp) weights_Tk[t * k + c] /= sum;
  }
}

__global__ void backward_kernel(const float* dweights_Tk, const float* probs_TE, const int64_t* index_Tk,
                                const float* weights_Tk, const float* daux_TE, int64_t T, int64_t E, int64_t k,
                                bool normalize, float* dlogits_TE) {
  const int lane = threadIdx.x % kWarp;
  for (int64_t t = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; t < T; t += int64_t{gridDim.x} * kWarps) {
    const float* probs = probs_TE + t * E;
    const float* dweights = dweights_Tk + t * k;
    const int64_t* index = index_Tk + t * k;
    float* dprobs = dlogits_TE + t * E;
    for (int64_t e = lane; e < E; e += kWarp) dprobs[e] = daux_TE ? daux_TE[t * E + e] : 0.0f;
    float mean = 0, selected = 0;
    for (int64_t c = lane; c < k; c += kWarp) {
      mean += dweights[c] * weights_Tk[t * k + c];
      selected += probs[index[c]];
    }
    mean = warp_reduce<Sum>(mean);
    selected = warp_reduce<Sum>(selected);
    __syncwarp();  // dprobs is complete before the chosen experts are added, by other lanes than wrote them
    for (int64_t c = lane; c < k; c += kWarp)
      dprobs[index[c]] += normalize ? (dweights[c] - mean) / selected : dweights[c];
    __syncwarp();
    float dot = 0;
    for (int64_t e = lane; e < E; e += kWarp) dot += probs[e] * dprobs[e];
    dot = warp_reduce<Sum>(dot);
    for (int64_t e = lane; e < E; e += kWarp) dprobs[e] = probs[e] * (dprobs[e] - dot);
  }
}

}  // namespace

WtStatus router_forward(void* handle, const float* logits, int64_t T, int64_t E, int64_t k, bool normalize,
                        float* probs, float* weights, int64_t* index, int64_t* counts) {
  const cudaError_t cleared = cudaMemsetAsync(counts, 0, static_cast<size_t>(E) * sizeof(int64_t), stream_of(handle));
  if (WtStatus bad = status_of(cleared, "wt_router_forward")) return bad;
  if (T == 0) return WT_OK;
  forward_kernel<<<blocks_for(T, kWarps), kThreads, 0, stream_of(handle)>>>(
      logits, T, E, k, normalize, probs, weights, index, reinterpret_cast<unsigned long long*>(counts));
  return launched("wt_router_forward");
}

WtStatus router_backward(void* handle, const float* dweights, const float* probs, const int64_t* index,
                         const float* weights, const float* daux_dprobs, int64_t T, int64_t E, int64_t k,
                         bool normalize, float* dlogits) {
  backward_kernel<<<blocks_for(T, kWarps), kThreads, 0, stream_of(handle)>>>(dweights, probs, index, weights,
                                                                             daux_dprobs, T, E, k, normalize, dlogits);
  return launched("wt_router_backward");
}

}  // namespace wt::kernels::cuda
