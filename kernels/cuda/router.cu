// Router. kLanes neighbouring lanes handle a token and hold its experts in kPer registers each, so that no lane is idle
// when there are few experts. No floating-point atomics: a block handles kBlockTokens tokens of one sequence and writes
// its sums to scratch memory; a second kernel adds them in a fixed order.
#include <climits>
#include <type_traits>

#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kBlockTokens = 64;  // partial sums stay small compared with the logits
constexpr int kLseWarps = kBlockTokens / kWarp;
/// Warps of a forward block: as many as registers allow, to hide the latency of a token's dependent steps.
template <int kPer>
constexpr int kWarps = kPer <= 8 ? 16 : 8;

/// Integers that order like the numbers: -0 as 0, NaN above all.
__device__ inline int order_key(float x) {
  const int bits = __float_as_int(x + 0.0f);
  return x == x ? bits ^ ((bits >> 31) & INT_MAX) : INT_MAX;
}
__device__ inline float of_order_key(int key) { return __int_as_float(key ^ ((key >> 31) & INT_MAX)); }

/// The largest key of a token, one key per lane.
template <int kLanes>
__device__ inline int largest_key(int key) {
  if constexpr (kLanes == kWarp) return __reduce_max_sync(kAllLanes, key);
  return warp_reduce<Max, kLanes>(key);
}

struct Best {
  int key, at;
};
/// Register i of a lane holds expert (or group) kLanes * i + lane. Every lane gets the largest key and its number (the
/// lowest of equals), which is then excluded.
template <int kLanes, int kPer>
__device__ inline Best take_best(int (&key)[kPer], int lane) {
  int best = kRouterExcluded, at = INT_MAX;
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    if (key[i] > best) best = key[i], at = kLanes * i + lane;
  }
  if constexpr (kLanes == kWarp) {
    const int top = __reduce_max_sync(kAllLanes, best);
    at = __reduce_min_sync(kAllLanes, best == top ? at : INT_MAX);
    best = top;
  } else {
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      const int other = __shfl_xor_sync(kAllLanes, best, offset), other_at = __shfl_xor_sync(kAllLanes, at, offset);
      if (other > best || (other == best && other_at < at)) best = other, at = other_at;
    }
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) key[i] = kLanes * i + lane == at ? kRouterExcluded : key[i];
  return {best, at};
}

/// Excludes the experts of all but the best groups.
template <int kLanes, int kPer>
__device__ inline void close_groups(const WtRouterSpec& spec, int (&key)[kPer], int lane) {
  const int groups = static_cast<int>(spec.groups), per_group = static_cast<int>(spec.E / spec.groups);
  int worth[kPer];
  for (int i = 0; i < kPer; ++i) worth[i] = kRouterExcluded;
#pragma unroll 1
  for (int g = 0; g < groups; ++g) {
    int inside[kPer], mine = kRouterExcluded;
    for (int i = 0; i < kPer; ++i) {
      inside[i] = (kLanes * i + lane) / per_group == g ? key[i] : kRouterExcluded;
      mine = inside[i] > mine ? inside[i] : mine;
    }
    float sum = of_order_key(largest_key<kLanes>(mine));
    if (spec.group_best == 2 && per_group > 1) {
      take_best<kLanes>(inside, lane);
      mine = kRouterExcluded;
      for (int i = 0; i < kPer; ++i) mine = inside[i] > mine ? inside[i] : mine;
      sum += of_order_key(largest_key<kLanes>(mine));
    }
    for (int i = 0; i < kPer; ++i) {
      if (kLanes * i + lane == g) worth[i] = order_key(sum);
    }
  }
  unsigned open = 0;  // bit i: the group of register i's expert is chosen
#pragma unroll 1
  for (int64_t c = 0; c < spec.top_groups; ++c) {
    const int g = take_best<kLanes>(worth, lane).at;
    for (int i = 0; i < kPer; ++i) open |= static_cast<unsigned>((kLanes * i + lane) / per_group == g) << i;
  }
  for (int i = 0; i < kPer; ++i) {
    if (!(open >> i & 1)) key[i] = kRouterExcluded;
  }
}

struct Exponentials {
  float largest, total;
};
/// p = exp(logit - largest); logits beyond the last expert are -infinity.
template <int kLanes, int kPer>
__device__ inline Exponentials exponentials(const float (&logit)[kPer], float (&p)[kPer]) {
  float largest = logit[0], total = 0;
#pragma unroll
  for (int i = 1; i < kPer; ++i) largest = Max::of(largest, logit[i]);
  largest = warp_reduce<Max, kLanes>(largest);
#pragma unroll
  for (int i = 0; i < kPer; ++i) total += p[i] = expf(logit[i] - largest);
  return {largest, warp_reduce<Sum, kLanes>(total)};
}
__device__ inline double log_sum_exp(Exponentials of) {
  return static_cast<double>(of.largest) + log(static_cast<double>(of.total));
}

template <int kLanes, int kPer>
__device__ inline void load_row(const float* row, int E, int lane, float (&x)[kPer], float beyond) {
#pragma unroll
  for (int i = 0; i < kPer; ++i) x[i] = kLanes * i + lane < E ? row[kLanes * i + lane] : beyond;
}
/// Broadcasts the value of expert `e` to every lane.
template <int kLanes, int kPer>
__device__ inline float of_expert(const float (&x)[kPer], int e, int lane) {
  const int first = e - lane;  // equals kLanes * i in the lane whose register i holds it
  float value = 0;
#pragma unroll
  for (int i = 0; i < kPer; ++i) value = first == kLanes * i ? x[i] : value;
  return __shfl_sync(kAllLanes, value, e & (kLanes - 1), kLanes);
}

/// Partial sums of the blocks, (blocks, E) and (blocks, kLseWarps).
struct Partial {
  float* shares;
  int* counts;
  double* lse_squares;
};

template <int kLanes, int kPer>
__global__ void __launch_bounds__(kWarps<kPer>* kWarp)
    forward_kernel(WtRouterSpec spec, unsigned sequence_blocks, const float* logits_TE, const float* bias,
                   int64_t* index_Tk, float* scores_TE, float* weights_Tk, Partial partial) {
  constexpr int kInBlock = kWarps<kPer> * kWarp, kAtOnce = kInBlock / kLanes;
  __shared__ float block_shares[kWarps<kPer>][kLanes * kPer];
  __shared__ int block_counts[kLanes * kPer];
  __shared__ Exponentials block_exponentials[kBlockTokens];
  const int lane = threadIdx.x % kLanes, own = threadIdx.x / kLanes, warp = threadIdx.x / kWarp;
  const int E = static_cast<int>(spec.E), k = static_cast<int>(spec.k);
  for (int e = threadIdx.x; e < kLanes * kPer; e += kInBlock) block_counts[e] = 0;
  wait_for_previous();
  next_may_start();
  const int64_t of_sequence = int64_t{blockIdx.x % sequence_blocks} * kBlockTokens;
  const int64_t first = blockIdx.x / sequence_blocks * spec.sequence + of_sequence;
  const int tokens = static_cast<int>(min(int64_t{kBlockTokens}, spec.sequence - of_sequence));
  float share_sum[kPer] = {}, next[kPer];
  load_row<kLanes>(logits_TE + (first + min(own, tokens - 1)) * E, E, lane, next, -INFINITY);
  __syncthreads();
#pragma unroll 1
  for (int begin = 0; begin < tokens; begin += kAtOnce) {
    // All lanes of a warp take part: those beyond the last token repeat it and store nothing.
    const bool inside = begin + own < tokens;
    const int64_t t = first + min(begin + own, tokens - 1);
    float logit[kPer], score[kPer], to_share = 1;
#pragma unroll
    for (int i = 0; i < kPer; ++i) logit[i] = next[i];
    if (begin + kAtOnce < tokens)
      load_row<kLanes>(logits_TE + (first + min(begin + kAtOnce + own, tokens - 1)) * E, E, lane, next, -INFINITY);
    if (spec.score == WT_SOFTMAX || partial.lse_squares) {
      const Exponentials sum = exponentials<kLanes>(logit, score);
      if (lane == 0 && inside) block_exponentials[begin + own] = sum;
      const float inverse = 1.0f / sum.total;
#pragma unroll
      for (int i = 0; i < kPer; ++i) score[i] *= inverse;
    }
    if (spec.score == WT_SIGMOID) {
      float total = 0;
#pragma unroll
      for (int i = 0; i < kPer; ++i) total += score[i] = sigmoid(logit[i]);
      to_share = 1.0f / (warp_reduce<Sum, kLanes>(total) + kRouterTiny);
    }
    int key[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const int e = kLanes * i + lane;
      if (inside && e < E) scores_TE[t * E + e] = score[i];
      if (inside) share_sum[i] += score[i] * to_share;
      key[i] = e < E ? order_key(bias ? score[i] + bias[e] : score[i]) : kRouterExcluded;
    }
    if (!spec.given && spec.top_groups < spec.groups) close_groups<kLanes>(spec, key, lane);

    // Lane c % kLanes keeps choice c; choices are handled kLanes at a time.
    int64_t* index = index_Tk + t * k;
    float* weights = weights_Tk + t * k;
    float chosen_sum = 0, weight = 0;
#pragma unroll 1
    for (int from = 0; from < k; from += kLanes) {
      const int here = min(k - from, kLanes);
      int chosen = spec.given && lane < here ? static_cast<int>(index[from + lane]) : 0;
#pragma unroll 1
      for (int c = 0; c < here; ++c) {
        Best best{0, 0};
        if (spec.given)
          best.at = __shfl_sync(kAllLanes, chosen, c, kLanes);
        else
          best = take_best<kLanes>(key, lane);
        const float of_best =
            spec.given || bias ? of_expert<kLanes>(score, best.at, lane) : of_order_key(best.key);  // its score
        chosen_sum += of_best;
        if (lane == c) chosen = best.at, weight = of_best;
      }
      if (lane >= here || !inside) continue;
      if (!spec.given) index[from + lane] = chosen;
      if (partial.counts) atomicAdd(&block_counts[chosen], 1);
      if (from + lane + kLanes < k) weights[from + lane] = weight;  // the lane's register is needed for a later choice
    }
#pragma unroll 1
    for (int c = lane; c < k && inside; c += kLanes) {
      const float kept = c + kLanes < k ? weights[c] : weight;
      weights[c] = (spec.normalize ? kept / (chosen_sum + kRouterTiny) : kept) * spec.scale;
    }
  }

#pragma unroll
  for (int i = 0; i < kPer; ++i) {
#pragma unroll
    for (int offset = kLanes; offset < kWarp; offset *= 2)
      share_sum[i] += __shfl_xor_sync(kAllLanes, share_sum[i], offset);
    if (threadIdx.x % kWarp < kLanes) block_shares[warp][kLanes * i + lane] = share_sum[i];
  }
  __syncthreads();
  if (partial.lse_squares && warp < kLseWarps) {  // one lane per token
    const double lse = static_cast<int>(threadIdx.x) < tokens ? log_sum_exp(block_exponentials[threadIdx.x]) : 0;
    const double squares = warp_reduce<Sum>(lse * lse);
    if (threadIdx.x % kWarp == 0) partial.lse_squares[int64_t{blockIdx.x} * kLseWarps + warp] = squares;
  }
  for (int e = kInBlock - 1 - static_cast<int>(threadIdx.x); e < E; e += kInBlock) {  // starts at the idle warps
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps<kPer>; ++w) sum += block_shares[w][e];
    if (partial.shares) partial.shares[int64_t{blockIdx.x} * E + e] = sum;
    if (partial.counts) partial.counts[int64_t{blockIdx.x} * E + e] = block_counts[e];
  }
}

/// sums[blockIdx.x] = the sum of this sequence's rows of partial (blocks, columns), for 32 columns.
template <class From, class To>
__device__ inline void sum_blocks(const From* partial, int64_t sequence_blocks, int columns, To* sums) {
  const int column = kWarp * static_cast<int>(blockIdx.y) + static_cast<int>(threadIdx.x);
  const From* first = partial + int64_t{blockIdx.x} * sequence_blocks * columns + column;
  const To sum = column_sum<To>(first, columns, column < columns ? sequence_blocks : 0);
  if (threadIdx.y == 0 && column < columns) sums[int64_t{blockIdx.x} * columns + column] = sum;
}

/// blockIdx.z selects one of the three sums.
__global__ void sum_kernel(Partial partial, int64_t sequence_blocks, int E, int64_t* counts, double* share_sums,
                           double* lse_squares) {
  wait_for_previous();
  if (blockIdx.z == 0 && counts) sum_blocks(partial.counts, sequence_blocks, E, counts);
  if (blockIdx.z == 1 && share_sums) sum_blocks(partial.shares, sequence_blocks, E, share_sums);
  if (blockIdx.z == 2 && lse_squares && blockIdx.y == 0)
    sum_blocks(partial.lse_squares, sequence_blocks * kLseWarps, 1, lse_squares);
}

template <int kLanes, int kPer>
__global__ void backward_kernel(WtRouterSpec spec, const float* dweights_Tk, const float* scores_TE,
                                const int64_t* index_Tk, const float* dshare_sums_SE, const float* logits_TE,
                                float dlse_squares, float* dlogits_TE) {
  constexpr int kAtOnce = kThreads / kLanes, kInWarp = kWarp / kLanes;
  const int lane = threadIdx.x % kLanes, own = threadIdx.x % kWarp / kLanes, E = static_cast<int>(spec.E);
  const int64_t of_warp = int64_t{blockIdx.x} * kAtOnce + threadIdx.x / kWarp * kInWarp;
#pragma unroll 1
  for (int64_t from_token = of_warp; from_token < spec.T; from_token += int64_t{gridDim.x} * kAtOnce) {
    const int64_t t = min(from_token + own, spec.T - 1);  // lanes beyond the last token repeat it
    const float* dweights = dweights_Tk + t * spec.k;
    const int64_t* index = index_Tk + t * spec.k;
    float score[kPer], gradient[kPer] = {};
    load_row<kLanes>(scores_TE + t * E, E, lane, score, 0);
    if (dshare_sums_SE) load_row<kLanes>(dshare_sums_SE + t / spec.sequence * E, E, lane, gradient, 0);
    if (dshare_sums_SE && spec.score == WT_SIGMOID) {
      float all = 0, dot = 0;
      for (int i = 0; i < kPer; ++i) all += score[i], dot += score[i] * gradient[i];
      const float divisor = warp_reduce<Sum, kLanes>(all) + kRouterTiny, mean = warp_reduce<Sum, kLanes>(dot) / divisor;
      for (int i = 0; i < kPer; ++i) gradient[i] = (gradient[i] - mean) / divisor;
    }
    float mean = 0, divisor = 1;
    if (spec.normalize) {
      divisor = kRouterTiny;
      for (int64_t c = 0; c < spec.k; ++c) divisor += of_expert<kLanes>(score, static_cast<int>(index[c]), lane);
      for (int64_t c = 0; c < spec.k; ++c)
        mean += dweights[c] * (of_expert<kLanes>(score, static_cast<int>(index[c]), lane) / divisor);
    }
    for (int64_t c = 0; c < spec.k; ++c) {
      const float added = spec.scale * ((dweights[c] - mean) / divisor);
      for (int i = 0; i < kPer; ++i) gradient[i] += kLanes * i + lane == index[c] ? added : 0.0f;
    }
    if (spec.score == WT_SOFTMAX) {
      float dot = 0;
      for (int i = 0; i < kPer; ++i) dot += score[i] * gradient[i];
      dot = warp_reduce<Sum, kLanes>(dot);
      for (int i = 0; i < kPer; ++i) gradient[i] = score[i] * (gradient[i] - dot);
    } else {
      for (int i = 0; i < kPer; ++i) gradient[i] *= score[i] * (1.0f - score[i]);
    }
    if (dlse_squares != 0) {
      float logit[kPer];
      load_row<kLanes>(logits_TE + t * E, E, lane, logit, -INFINITY);
      const Exponentials sum = exponentials<kLanes>(logit, logit);
      const float factor = 2 * dlse_squares * static_cast<float>(log_sum_exp(sum)) / sum.total;
      for (int i = 0; i < kPer; ++i) gradient[i] += logit[i] * factor;
    }
    for (int i = 0; i < kPer; ++i) {
      if (kLanes * i + lane < E) dlogits_TE[t * E + kLanes * i + lane] = gradient[i];
    }
  }
}

/// launch(integral_constant lanes of a token, integral_constant registers of a lane)
template <class Launch>
void with_lanes(int64_t E, Launch launch) {
  using std::integral_constant;
  if (E <= 16) return launch(integral_constant<int, 8>(), integral_constant<int, 2>());
  if (E <= 32) return launch(integral_constant<int, 8>(), integral_constant<int, 4>());
  if (E <= 64) return launch(integral_constant<int, 8>(), integral_constant<int, 8>());
  if (E <= 128) return launch(integral_constant<int, 16>(), integral_constant<int, 8>());
  if (E <= 256) return launch(integral_constant<int, 32>(), integral_constant<int, 8>());
  if (E <= 512) return launch(integral_constant<int, 32>(), integral_constant<int, 16>());
  static_assert(kMaxCudaRouterExperts == 32 * 32, "the largest that has an instance");
  launch(integral_constant<int, 32>(), integral_constant<int, 32>());
}

}  // namespace

WtStatus router_forward(void* handle, WtRouterSpec spec, const float* logits, const float* bias, int64_t* index,
                        float* scores, float* weights, int64_t* counts, double* share_sums, double* lse_squares) {
  const cudaStream_t stream = stream_of(handle);
  const int64_t sequences = spec.T / spec.sequence, sequence_blocks = (spec.sequence + kBlockTokens - 1) / kBlockTokens;
  const int64_t blocks = sequences * sequence_blocks;
  const int64_t of_E = blocks * spec.E, doubles = lse_squares ? blocks * kLseWarps : 0, floats = share_sums ? of_E : 0;
  const Scratch<double> sums(handle, doubles + (floats + (counts ? of_E : 0) + 1) / 2 + 1);
  if (WtStatus bad = status_of(sums.error(), "wt_router_forward")) return bad;
  float* shares = reinterpret_cast<float*>(sums.data() + doubles);
  const Partial partial{share_sums ? shares : nullptr, counts ? reinterpret_cast<int*>(shares + floats) : nullptr,
                        lse_squares ? sums.data() : nullptr};
  cudaError_t error = cudaSuccess;
  with_lanes(spec.E, [&](auto lanes, auto registers) {
    constexpr int kLanes = decltype(lanes)::value, kPer = decltype(registers)::value;
    error = launch_beside_previous(forward_kernel<kLanes, kPer>, static_cast<unsigned>(blocks), kWarps<kPer> * kWarp, 0,
                                   stream, spec, sequence_blocks, logits, bias, index, scores, weights, partial);
  });
  const dim3 grid(static_cast<unsigned>(sequences), static_cast<unsigned>((spec.E + kWarp - 1) / kWarp), 3);
  if (error == cudaSuccess && (counts || share_sums || lse_squares))
    error = launch_beside_previous(sum_kernel, grid, dim3(kWarp, kWarp), 0, stream, partial, sequence_blocks, spec.E,
                                   counts, share_sums, lse_squares);
  return status_of(error, "wt_router_forward");
}

WtStatus router_backward(void* handle, WtRouterSpec spec, const float* dweights, const float* scores,
                         const int64_t* index, const float* dshare_sums, const float* logits, float dlse_squares,
                         float* dlogits) {
  with_lanes(spec.E, [&](auto lanes, auto registers) {
    constexpr int kLanes = decltype(lanes)::value, kPer = decltype(registers)::value;
    launch(backward_kernel<kLanes, kPer>, blocks_for(spec.T, kThreads / kLanes), kThreads, 0, stream_of(handle), spec,
           dweights, scores, index, dshare_sums, logits, dlse_squares, dlogits);
  });
  return launched("wt_router_backward");
}

}  // namespace wt::kernels::cuda
