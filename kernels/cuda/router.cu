// Router: one warp a token, experts in the lanes' registers. No floating-point atomics: a block takes kBlockTokens
// tokens of one sequence and leaves its sums in scratch memory, which a second kernel adds up in a fixed order.
#include <climits>
#include <type_traits>

#include "kernels/cuda/common.cuh"

namespace wt::kernels::cuda {
namespace {

constexpr int kBlockTokens = 32;  // enough that the partial sums are small beside the logits
/// Warps of a forward block: as many as registers allow, because a token is a long chain of dependent steps.
template <int kPer>
constexpr int kWarps = kPer <= 4 ? 16 : 8;
constexpr int kBackwardWarps = kThreads / kWarp;

/// Integers in the order of the numbers, -0 as 0, a NaN above all.
__device__ inline int order_key(float x) {
  const int bits = __float_as_int(x + 0.0f);
  return x == x ? bits ^ ((bits >> 31) & INT_MAX) : INT_MAX;
}
__device__ inline float of_order_key(int key) { return __int_as_float(key ^ ((key >> 31) & INT_MAX)); }

/// Expert (or group) kWarp * i + lane is in register i of the lane. Every lane gets the largest key's number, the
/// lowest of equals, which is then excluded.
template <int kPer>
__device__ inline int take_best(int (&key)[kPer], int lane) {
  int best = kRouterExcluded, at = INT_MAX;
  for (int i = 0; i < kPer; ++i) {
    if (key[i] > best) best = key[i], at = kWarp * i + lane;
  }
  const int top = __reduce_max_sync(kAllLanes, best);
  const int taken = __reduce_min_sync(kAllLanes, best == top ? at : INT_MAX);
  for (int i = 0; i < kPer; ++i) {
    if (kWarp * i + lane == taken) key[i] = kRouterExcluded;
  }
  return taken;
}

/// Excludes the experts of all but the best groups.
template <int kPer>
__device__ inline void close_groups(const WtRouterSpec& spec, int (&key)[kPer], int lane) {
  const int groups = static_cast<int>(spec.groups), per_group = static_cast<int>(spec.E / spec.groups);
  int worth[kPer];
  for (int i = 0; i < kPer; ++i) worth[i] = kRouterExcluded;
  for (int g = 0; g < groups; ++g) {
    int inside[kPer], mine = kRouterExcluded;
    for (int i = 0; i < kPer; ++i) {
      inside[i] = (kWarp * i + lane) / per_group == g ? key[i] : kRouterExcluded;
      mine = inside[i] > mine ? inside[i] : mine;
    }
    float sum = of_order_key(__reduce_max_sync(kAllLanes, mine));
    if (spec.group_best == 2 && per_group > 1) {
      take_best(inside, lane);
      mine = kRouterExcluded;
      for (int i = 0; i < kPer; ++i) mine = inside[i] > mine ? inside[i] : mine;
      sum += of_order_key(__reduce_max_sync(kAllLanes, mine));
    }
    for (int i = 0; i < kPer; ++i) {
      if (kWarp * i + lane == g) worth[i] = order_key(sum);
    }
  }
  unsigned open = 0;  // bit i: the group of register i's expert
  for (int64_t c = 0; c < spec.top_groups; ++c) {
    const int g = take_best(worth, lane);
    for (int i = 0; i < kPer; ++i) open |= static_cast<unsigned>((kWarp * i + lane) / per_group == g) << i;
  }
  for (int i = 0; i < kPer; ++i) {
    if (!(open >> i & 1)) key[i] = kRouterExcluded;
  }
}

struct Exponentials {
  float largest, total;
};
/// p = exp(logit - largest), 0 beyond E.
template <int kPer>
__device__ inline Exponentials exponentials(const float (&logit)[kPer], int E, int lane, float (&p)[kPer]) {
  float largest = -INFINITY, total = 0;
  for (int i = 0; i < kPer; ++i) {
    if (kWarp * i + lane < E) largest = Max::of(largest, logit[i]);
  }
  largest = warp_reduce<Max>(largest);
  for (int i = 0; i < kPer; ++i) total += p[i] = kWarp * i + lane < E ? expf(logit[i] - largest) : 0.0f;
  return {largest, warp_reduce<Sum>(total)};
}
__device__ inline double log_sum_exp(Exponentials of) {
  return static_cast<double>(of.largest) + log(static_cast<double>(of.total));
}

template <int kPer>
__device__ inline void load_row(const float* row, int E, int lane, float (&x)[kPer]) {
  for (int i = 0; i < kPer; ++i) x[i] = kWarp * i + lane < E ? row[kWarp * i + lane] : 0.0f;
}
/// Every lane gets the value of expert `e`.
template <int kPer>
__device__ inline float of_expert(const float (&x)[kPer], int e) {
  float value = 0;
  for (int i = 0; i < kPer; ++i) {
    if (e / kWarp == i) value = x[i];
  }
  return __shfl_sync(kAllLanes, value, e % kWarp);
}

/// Sums of one block, (blocks, E) and (blocks).
struct Partial {
  float* shares;
  int* counts;
  double* lse_squares;
};

template <int kPer>
__global__ void __launch_bounds__(kWarps<kPer>* kWarp)
    forward_kernel(WtRouterSpec spec, int64_t sequence_blocks, const float* logits_TE, const float* bias,
                   int64_t* index_Tk, float* scores_TE, float* weights_Tk, Partial partial) {
  __shared__ float block_shares[kWarps<kPer>][kPer * kWarp];
  __shared__ int block_counts[kPer * kWarp];
  __shared__ double block_lse[kWarps<kPer>];
  constexpr int kInBlock = kWarps<kPer> * kWarp;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, E = static_cast<int>(spec.E),
            k = static_cast<int>(spec.k);
  for (int e = threadIdx.x; e < kPer * kWarp; e += kInBlock) block_counts[e] = 0;
  __syncthreads();
  const int64_t begin = blockIdx.x / sequence_blocks * spec.sequence;
  const int64_t first = begin + blockIdx.x % sequence_blocks * kBlockTokens;
  const int64_t end = min(first + kBlockTokens, begin + spec.sequence);
  float share_sum[kPer] = {}, next[kPer];
  Exponentials of_token{0, 1};  // lane i has those of this warp's token i
  if (first + warp < end) load_row(logits_TE + (first + warp) * E, E, lane, next);
#pragma unroll 1
  for (int64_t t = first + warp; t < end; t += kWarps<kPer>) {
    float logit[kPer], score[kPer], to_share = 1;
    for (int i = 0; i < kPer; ++i) logit[i] = next[i];
    if (t + kWarps<kPer> < end) load_row(logits_TE + (t + kWarps<kPer>)*E, E, lane, next);
    if (spec.score == WT_SOFTMAX || partial.lse_squares) {
      const Exponentials sum = exponentials(logit, E, lane, score);
      if (lane == (t - first) / kWarps<kPer>) of_token = sum;
      const float inverse = 1.0f / sum.total;
      for (int i = 0; i < kPer; ++i) score[i] *= inverse;
    }
    if (spec.score == WT_SIGMOID) {
      float total = 0;
      for (int i = 0; i < kPer; ++i) total += score[i] = kWarp * i + lane < E ? sigmoid(logit[i]) : 0.0f;
      to_share = 1.0f / (warp_reduce<Sum>(total) + kRouterTiny);
    }
    int key[kPer];
    for (int i = 0; i < kPer; ++i) {
      const int e = kWarp * i + lane;
      key[i] = kRouterExcluded;
      if (e >= E) continue;
      scores_TE[t * E + e] = score[i];
      share_sum[i] += score[i] * to_share;
      key[i] = order_key(score[i] + (bias ? bias[e] : 0.0f));
    }
    if (!spec.given && spec.top_groups < spec.groups) close_groups(spec, key, lane);

    // Lane c % kWarp keeps choice c: a warp's worth of choices at a time.
    int64_t* index = index_Tk + t * k;
    float* weights = weights_Tk + t * k;
    float chosen_sum = 0, weight = 0;
    for (int from = 0; from < k; from += kWarp) {
      const int here = min(k - from, kWarp);
      int chosen = spec.given && lane < here ? static_cast<int>(index[from + lane]) : 0;
      for (int c = 0; c < here; ++c) {
        const int e = spec.given ? __shfl_sync(kAllLanes, chosen, c) : take_best(key, lane);
        const float of_e = of_expert(score, e);
        chosen_sum += of_e;
        if (lane == c) chosen = e, weight = of_e;
      }
      if (lane >= here) continue;
      if (!spec.given) index[from + lane] = chosen;
      if (partial.counts) atomicAdd(&block_counts[chosen], 1);
      if (from + lane + kWarp < k) weights[from + lane] = weight;  // its lane goes on to a later choice
    }
    for (int c = lane; c < k; c += kWarp) {
      const float own = c + kWarp < k ? weights[c] : weight;
      weights[c] = (spec.normalize ? own / (chosen_sum + kRouterTiny) : own) * spec.scale;
    }
  }

  const int64_t tokens = end - first - warp;  // that this warp and those after it have
  double lse_square = 0;
  if (partial.lse_squares && lane * kWarps<kPer> < tokens) {
    const double lse = log_sum_exp(of_token);
    lse_square = lse * lse;
  }
  lse_square = warp_reduce<Sum>(lse_square);
  if (lane == 0) block_lse[warp] = lse_square;
  for (int i = 0; i < kPer; ++i) block_shares[warp][kWarp * i + lane] = share_sum[i];
  __syncthreads();
  for (int e = threadIdx.x; e < E; e += kInBlock) {
    float sum = 0;
    for (int w = 0; w < kWarps<kPer>; ++w) sum += block_shares[w][e];
    if (partial.shares) partial.shares[int64_t{blockIdx.x} * E + e] = sum;
    if (partial.counts) partial.counts[int64_t{blockIdx.x} * E + e] = block_counts[e];
  }
  if (partial.lse_squares && threadIdx.x == 0) {
    double sum = 0;
    for (int w = 0; w < kWarps<kPer>; ++w) sum += block_lse[w];
    partial.lse_squares[blockIdx.x] = sum;
  }
}

/// sums[blockIdx.x] = the sum of this sequence's rows of partial, (blocks, columns), of 32 columns.
template <class From, class To>
__device__ inline void sum_blocks(const From* partial, int64_t sequence_blocks, int columns, To* sums) {
  const int column = kWarp * static_cast<int>(blockIdx.y) + static_cast<int>(threadIdx.x);
  const From* first = partial + int64_t{blockIdx.x} * sequence_blocks * columns + column;
  const To sum = column_sum<To>(first, columns, column < columns ? sequence_blocks : 0);
  if (threadIdx.y == 0 && column < columns) sums[int64_t{blockIdx.x} * columns + column] = sum;
}

/// blockIdx.z: one of the three sums.
__global__ void sum_kernel(Partial partial, int64_t sequence_blocks, int E, int64_t* counts, double* share_sums,
                           double* lse_squares) {
  if (blockIdx.z == 0 && counts) sum_blocks(partial.counts, sequence_blocks, E, counts);
  if (blockIdx.z == 1 && share_sums) sum_blocks(partial.shares, sequence_blocks, E, share_sums);
  if (blockIdx.z == 2 && lse_squares && blockIdx.y == 0)
    sum_blocks(partial.lse_squares, sequence_blocks, 1, lse_squares);
}

template <int kPer>
__global__ void backward_kernel(WtRouterSpec spec, const float* dweights_Tk, const float* scores_TE,
                                const int64_t* index_Tk, const float* dshare_sums_SE, const float* logits_TE,
                                float dlse_squares, float* dlogits_TE) {
  const int lane = threadIdx.x % kWarp, E = static_cast<int>(spec.E);
  for (int64_t t = int64_t{blockIdx.x} * kBackwardWarps + threadIdx.x / kWarp; t < spec.T;
       t += int64_t{gridDim.x} * kBackwardWarps) {
    const float* dweights = dweights_Tk + t * spec.k;
    const int64_t* index = index_Tk + t * spec.k;
    float score[kPer], gradient[kPer] = {};
    load_row(scores_TE + t * E, E, lane, score);
    if (dshare_sums_SE) load_row(dshare_sums_SE + t / spec.sequence * E, E, lane, gradient);
    if (dshare_sums_SE && spec.score == WT_SIGMOID) {
      float all = 0, dot = 0;
      for (int i = 0; i < kPer; ++i) all += score[i], dot += score[i] * gradient[i];
      const float divisor = warp_reduce<Sum>(all) + kRouterTiny, mean = warp_reduce<Sum>(dot) / divisor;
      for (int i = 0; i < kPer; ++i) gradient[i] = (gradient[i] - mean) / divisor;
    }
    float mean = 0, divisor = 1;
    if (spec.normalize) {
      divisor = kRouterTiny;
      for (int64_t c = 0; c < spec.k; ++c) divisor += of_expert(score, static_cast<int>(index[c]));
      for (int64_t c = 0; c < spec.k; ++c)
        mean += dweights[c] * (of_expert(score, static_cast<int>(index[c])) / divisor);
    }
    for (int64_t c = 0; c < spec.k; ++c) {
      const float added = spec.scale * ((dweights[c] - mean) / divisor);
      for (int i = 0; i < kPer; ++i) gradient[i] += kWarp * i + lane == index[c] ? added : 0.0f;
    }
    if (spec.score == WT_SOFTMAX) {
      float dot = 0;
      for (int i = 0; i < kPer; ++i) dot += score[i] * gradient[i];
      dot = warp_reduce<Sum>(dot);
      for (int i = 0; i < kPer; ++i) gradient[i] = score[i] * (gradient[i] - dot);
    } else {
      for (int i = 0; i < kPer; ++i) gradient[i] *= score[i] * (1.0f - score[i]);
    }
    if (dlse_squares != 0) {
      float logit[kPer];
      load_row(logits_TE + t * E, E, lane, logit);
      const Exponentials sum = exponentials(logit, E, lane, logit);
      const float factor = 2 * dlse_squares * static_cast<float>(log_sum_exp(sum)) / sum.total;
      for (int i = 0; i < kPer; ++i) gradient[i] += logit[i] * factor;
    }
    for (int i = 0; i < kPer; ++i) {
      if (kWarp * i + lane < E) dlogits_TE[t * E + kWarp * i + lane] = gradient[i];
    }
  }
}

/// launch(std::integral_constant<int, registers that hold a lane's experts>)
template <class Launch>
void with_registers(int64_t E, Launch launch) {
  if (E <= kWarp) return launch(std::integral_constant<int, 1>());
  if (E <= 2 * kWarp) return launch(std::integral_constant<int, 2>());
  if (E <= 4 * kWarp) return launch(std::integral_constant<int, 4>());
  if (E <= 8 * kWarp) return launch(std::integral_constant<int, 8>());
  if (E <= 16 * kWarp) return launch(std::integral_constant<int, 16>());
  static_assert(kMaxCudaRouterExperts == 32 * kWarp, "the largest that has an instance");
  launch(std::integral_constant<int, 32>());
}

}  // namespace

WtStatus router_forward(void* handle, WtRouterSpec spec, const float* logits, const float* bias, int64_t* index,
                        float* scores, float* weights, int64_t* counts, double* share_sums, double* lse_squares) {
  const cudaStream_t stream = stream_of(handle);
  const int64_t sequences = spec.T / spec.sequence, sequence_blocks = (spec.sequence + kBlockTokens - 1) / kBlockTokens;
  const int64_t blocks = sequences * sequence_blocks;
  const Scratch<float> block_shares(handle, share_sums ? blocks * spec.E : 1);
  const Scratch<int> block_counts(handle, counts ? blocks * spec.E : 1);
  const Scratch<double> block_lse(handle, lse_squares ? blocks : 1);
  for (const cudaError_t error : {block_shares.error(), block_counts.error(), block_lse.error()})
    if (WtStatus bad = status_of(error, "wt_router_forward")) return bad;
  const Partial partial{share_sums ? block_shares.data() : nullptr, counts ? block_counts.data() : nullptr,
                        lse_squares ? block_lse.data() : nullptr};
  with_registers(spec.E, [&](auto registers) {
    constexpr int kPer = decltype(registers)::value;
    forward_kernel<kPer><<<static_cast<unsigned>(blocks), kWarps<kPer> * kWarp, 0, stream>>>(
        spec, sequence_blocks, logits, bias, index, scores, weights, partial);
  });
  const dim3 threads(kWarp, kWarp);
  const dim3 grid(static_cast<unsigned>(sequences), static_cast<unsigned>((spec.E + kWarp - 1) / kWarp), 3);
  if (counts || share_sums || lse_squares)
    sum_kernel<<<grid, threads, 0, stream>>>(partial, sequence_blocks, static_cast<int>(spec.E), counts, share_sums,
                                             lse_squares);
  return launched("wt_router_forward");
}

WtStatus router_backward(void* handle, WtRouterSpec spec, const float* dweights, const float* scores,
                         const int64_t* index, const float* dshare_sums, const float* logits, float dlse_squares,
                         float* dlogits) {
  with_registers(spec.E, [&](auto registers) {
    backward_kernel<decltype(registers)::value><<<blocks_for(spec.T, kBackwardWarps), kThreads, 0, stream_of(handle)>>>(
        spec, dweights, scores, index, dshare_sums, logits, dlse_squares, dlogits);
  });
  return launched("wt_router_backward");
}

}  // namespace wt::kernels::cuda
