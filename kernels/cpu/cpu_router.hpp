// Router: scores of experts, group-limited top-k (ties go to the lowest expert), sums for the balancing losses, and the
// gradient of all of it.
#pragma once
#include <new>

#include "kernels/cpu/vec.hpp"

namespace {

constexpr int64_t kExpertBytes =
    32;  // cost of a token's expert for run_rows(), which counts bytes: the router is bound by computation

/// Integers that order like the numbers: -0 as 0, NaN above all.
WT_INLINE VecI order_key(Vec v) {
  const VecI bits = (VecI)(v + 0.0f);
  const VecI key = bits ^ ((bits >> 31) & 0x7fffffff);
  return v == v ? key : VecI{} + 0x7fffffff;
}
WT_INLINE float of_order_key(int32_t key) {
  const int32_t bits = key ^ ((key >> 31) & 0x7fffffff);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

constexpr int32_t kLaneNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

WT_INLINE VecI or_excluded(VecI key, Full) { return key; }
WT_INLINE VecI or_excluded(VecI key, Tail tail) {
  VecI lane;
  memcpy(&lane, kLaneNumbers, sizeof lane);
  return lane < static_cast<int32_t>(tail.count) ? key : VecI{} + kRouterExcluded;
}

/// Returns the position of the largest of n keys (the lowest of equals) and excludes it. The keys are padded to full
/// registers with kRouterExcluded.
WT_INLINE int64_t take_best(int32_t* keys, int64_t n) {
  VecI at, best = VecI{} + kRouterExcluded, best_at = {};
  memcpy(&at, kLaneNumbers, sizeof at);
  for (int64_t i = 0; i < n; i += kLanes, at += static_cast<int32_t>(kLanes)) {
    VecI key;
    memcpy(&key, keys + i, sizeof key);
    const VecI better = key > best;
    best = better ? key : best;
    best_at = better ? at : best_at;
  }
  int32_t key[kLanes], position[kLanes];
  memcpy(key, &best, sizeof key);
  memcpy(position, &best_at, sizeof position);
  int64_t lane = 0;
  for (int64_t i = 1; i < kLanes; ++i)
    if (key[i] > key[lane] || (key[i] == key[lane] && position[i] < position[lane])) lane = i;
  keys[position[lane]] = kRouterExcluded;
  return position[lane];
}

WT_INLINE int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

/// Excludes the experts of all but the best groups. `worth` must hold padded(groups) keys.
inline void close_groups(const WtRouterSpec& spec, int32_t* keys, int32_t* worth) {
  const int64_t per_group = spec.E / spec.groups, blocks = padded(spec.groups);
  for (int64_t g = 0; g < blocks; ++g) worth[g] = kRouterExcluded;
  for (int64_t g = 0; g < spec.groups; ++g) {
    int32_t best = kRouterExcluded, second = kRouterExcluded;
    for (int64_t e = g * per_group; e < (g + 1) * per_group; ++e) {
      const int32_t lower = keys[e] < best ? keys[e] : best;
      second = lower > second ? lower : second;
      best = keys[e] > best ? keys[e] : best;
    }
    float sum = of_order_key(best);
    if (spec.group_best == 2 && per_group > 1) sum += of_order_key(second);
    const VecI key = order_key(splat(sum));
    memcpy(worth + g, &key, sizeof *worth);
  }
  for (int64_t taken = 0; taken < spec.top_groups; ++taken) take_best(worth, blocks);
  for (int64_t g = 0; g < spec.groups; ++g) {
    if (worth[g] == kRouterExcluded) continue;  // chosen: its experts stay
    for (int64_t e = g * per_group; e < (g + 1) * per_group; ++e) keys[e] = kRouterExcluded;
  }
}

/// out = exp(logits - largest). `largest` and `total`, the sum, then give softmax and log-sum-exp.
struct Exponentials {
  float largest, total;
};
template <class Out>
WT_INLINE Exponentials exponentials(const float* logits, int64_t E, Out out) {
  Vec top = splat(-__builtin_inff());
  for_blocks(E, [&](int64_t i, auto part)
                    WT_LAMBDA { top = max(top, masked(load(logits + i, part), part, -__builtin_inff())); });
  const float largest = max_lanes(top);
  Vec total = {};
  for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA {
    const Vec p = exp(load(logits + i, part) - largest);
    total += masked(p, part, 0.0f);
    out(i, p, part);
  });
  return {largest, sum_lanes(total)};
}
WT_INLINE double log_sum_exp(Exponentials of) {
  return static_cast<double>(of.largest) + __builtin_log(static_cast<double>(of.total));
}

/// Scores of one token. Returns the divisor of its shares. Adds the square of its log-sum-exp.
WT_INLINE float scores_of(const WtRouterSpec& spec, const float* logits, float* scores, double* lse_square) {
  const auto keep = [scores](int64_t i, Vec p, auto part) WT_LAMBDA { store(scores + i, p, part); };
  float divisor = 1;
  Exponentials sum{0, 1};
  if (spec.score == WT_SOFTMAX) {
    sum = exponentials(logits, spec.E, keep);
    const float inverse = 1.0f / sum.total;
    for_blocks(spec.E,
               [&](int64_t i, auto part) WT_LAMBDA { store(scores + i, load(scores + i, part) * inverse, part); });
  } else {
    if (lse_square) sum = exponentials(logits, spec.E, [](int64_t, Vec, auto) WT_LAMBDA {});
    Vec total = {};
    for_blocks(spec.E, [&](int64_t i, auto part) WT_LAMBDA {
      const Vec s = sigmoid(load(logits + i, part));
      total += masked(s, part, 0.0f);
      store(scores + i, s, part);
    });
    divisor = sum_lanes(total) + kRouterTiny;
  }
  if (lse_square) *lse_square += log_sum_exp(sum) * log_sum_exp(sum);
  return divisor;
}

inline void choose(const WtRouterSpec& spec, const float* scores, const float* bias, int32_t* keys, int64_t* index) {
  for_blocks(spec.E, [&](int64_t i, auto part) WT_LAMBDA {
    const Vec judged = load(scores + i, part) + (bias ? load(bias + i, part) : Vec{});
    const VecI key = or_excluded(order_key(judged), part);
    memcpy(keys + i, &key, sizeof key);
  });
  const int64_t blocks = padded(spec.E);
  if (spec.top_groups < spec.groups) close_groups(spec, keys, keys + blocks);
  for (int64_t c = 0; c < spec.k; ++c) index[c] = take_best(keys, blocks);
}

inline WtStatus router_forward(void*, WtRouterSpec spec, const float* logits_TE, const float* bias, int64_t* index_Tk,
                               float* scores_TE, float* weights_Tk, int64_t* counts_SE, double* share_sums_SE,
                               double* lse_squares_S) {
  const int64_t E = spec.E, k = spec.k, S = spec.T / spec.sequence, keys_of_one = padded(E) + padded(spec.groups);
  int32_t* const keys_S = new (std::nothrow) int32_t[static_cast<size_t>(spec.given ? 0 : S * keys_of_one)];
  if (!keys_S) return out_of_memory("wt_router_forward", S * keys_of_one, "keys", "E");
  for_each_row(S, spec.sequence * E * kExpertBytes, [=](int64_t s) {  // one thread sums a whole sequence
    int64_t* counts = counts_SE ? counts_SE + s * E : nullptr;
    double* share_sums = share_sums_SE ? share_sums_SE + s * E : nullptr;
    double* lse_square = lse_squares_S ? lse_squares_S + s : nullptr;
    for (int64_t e = 0; counts && e < E; ++e) counts[e] = 0;
    for (int64_t e = 0; share_sums && e < E; ++e) share_sums[e] = 0;
    if (lse_square) *lse_square = 0;
    for (int64_t t = s * spec.sequence; t < (s + 1) * spec.sequence; ++t) {
      const float* scores = scores_TE + t * E;
      float* weights = weights_Tk + t * k;
      int64_t* index = index_Tk + t * k;
      const float divisor = scores_of(spec, logits_TE + t * E, scores_TE + t * E, lse_square);
      if (!spec.given) choose(spec, scores, bias, keys_S + s * keys_of_one, index);
      float sum = kRouterTiny;
      for (int64_t c = 0; c < k; ++c) sum += weights[c] = scores[index[c]];
      for (int64_t c = 0; spec.normalize && c < k; ++c) weights[c] /= sum;
      for (int64_t c = 0; c < k; ++c) weights[c] *= spec.scale;
      for (int64_t c = 0; counts && c < k; ++c) ++counts[index[c]];
      for (int64_t e = 0; share_sums && e < E; ++e) share_sums[e] += static_cast<double>(scores[e] / divisor);
    }
  });
  delete[] keys_S;
  return WT_OK;
}

/// dlogits += slope * log-sum-exp * softmax(logits)
WT_INLINE void add_lse_gradient(const float* logits, int64_t E, float slope, float* dlogits) {
  const Exponentials sum = exponentials(logits, E, [](int64_t, Vec, auto) WT_LAMBDA {});
  const float factor = slope * static_cast<float>(log_sum_exp(sum)) / sum.total;
  for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA {
    store(dlogits + i, load(dlogits + i, part) + exp(load(logits + i, part) - sum.largest) * factor, part);
  });
}

inline WtStatus router_backward(void*, WtRouterSpec spec, const float* dweights_Tk, const float* scores_TE,
                                const int64_t* index_Tk, const float* dshare_sums_SE, const float* logits_TE,
                                float dlse_squares, float* dlogits_TE) {
  const int64_t E = spec.E, k = spec.k;
  for_each_row(spec.T, E * kExpertBytes, [=](int64_t t) {
    const float* scores = scores_TE + t * E;
    const float* dweights = dweights_Tk + t * k;
    const int64_t* index = index_Tk + t * k;
    const float* dshares = dshare_sums_SE ? dshare_sums_SE + t / spec.sequence * E : nullptr;
    float* out = dlogits_TE + t * E;  // holds the gradient of the scores first
    Vec all = {}, dot = {};
    for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA {
      const Vec s = load(scores + i, part), d = dshares ? load(dshares + i, part) : Vec{};
      all += s, dot += s * d;
      store(out + i, d, part);
    });
    if (dshares && spec.score == WT_SIGMOID) {
      const float divisor = sum_lanes(all) + kRouterTiny, mean = sum_lanes(dot) / divisor;
      for_blocks(E,
                 [&](int64_t i, auto part) WT_LAMBDA { store(out + i, (load(out + i, part) - mean) / divisor, part); });
    }
    float mean = 0, divisor = 1;
    if (spec.normalize) {
      divisor = kRouterTiny;
      for (int64_t c = 0; c < k; ++c) divisor += scores[index[c]];
      for (int64_t c = 0; c < k; ++c) mean += dweights[c] * (scores[index[c]] / divisor);
    }
    for (int64_t c = 0; c < k; ++c) out[index[c]] += spec.scale * ((dweights[c] - mean) / divisor);
    if (spec.score == WT_SOFTMAX) {
      dot = Vec{};
      for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA { dot += load(scores + i, part) * load(out + i, part); });
      const float average = sum_lanes(dot);
      for_blocks(E, [&](int64_t i, auto part)
                        WT_LAMBDA { store(out + i, load(scores + i, part) * (load(out + i, part) - average), part); });
    } else {
      for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA {
        const Vec s = load(scores + i, part);
        store(out + i, load(out + i, part) * s * (1.0f - s), part);
      });
    }
    if (dlse_squares != 0) add_lse_gradient(logits_TE + t * E, E, 2 * dlse_squares, out);
  });
  return WT_OK;
}

}  // namespace
