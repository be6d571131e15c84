// Softmax over experts, top-k with ties to the lowest expert, and the gradient through both.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

/// The next expert in falling order of (probability, -expert) after the `done` ones of `chosen`.
WT_INLINE int64_t next_expert(const float* probs, int64_t E, const int64_t* chosen, int64_t done) {
  int64_t best = -1;
  for (int64_t e = 0; e < E; ++e) {
    // The probability decides first: most experts fail it, and only the rest are looked up among the chosen.
    if (best >= 0 && !(probs[e] > probs[best])) continue;
    bool taken = false;
    for (int64_t c = 0; c < done; ++c) taken |= chosen[c] == e;
    if (!taken) best = e;
  }
  return best;
}

inline WtStatus router_forward(void*, const float* logits_TE, int64_t T, int64_t E, int64_t k, bool normalize,
                               float* probs_TE, float* weights_Tk, int64_t* index_Tk, int64_t* counts_E) {
  for (int64_t e = 0; e < E; ++e) counts_E[e] = 0;
  for (int64_t t = 0; t < T; ++t) {
    const float* logits = logits_TE + t * E;
    float* probs = probs_TE + t * E;
    Vec top = splat(-__builtin_inff());
    for_blocks(E, [&](int64_t i, auto part)
                      WT_LAMBDA { top = max(top, masked(load(logits + i, part), part, -__builtin_inff())); });
    const float largest = max_lanes(top);
    Vec total = {};
    for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA {
      const Vec p = exp(load(logits + i, part) - largest);
      total += masked(p, part, 0.0f);
      store(probs + i, p, part);
    });
    const float inverse_total = 1.0f / sum_lanes(total);
    for_blocks(E,
               [&](int64_t i, auto part) WT_LAMBDA { store(probs + i, load(probs + i, part) * inverse_total, part); });

    float* weights = weights_Tk + t * k;
    int64_t* index = index_Tk + t * k;
    float sum = 0;
    for (int64_t c = 0; c < k; ++c) {
      index[c] = next_expert(probs, E, index, c);
      weights[c] = probs[index[c]];
      sum += weights[c];
      ++counts_E[index[c]];
    }
    for (int64_t c = 0; normalize && c < k; ++c) weights[c] /= sum;
  }
  return WT_OK;
}

inline WtStatus router_backward(void*, const float* dweights_Tk, const float* probs_TE, const int64_t* index_Tk,
                                const float* weights_Tk, const float* daux_TE, int64_t T, int64_t E, int64_t k,
                                bool normalize, float* dlogits_TE) {
  for (int64_t t = 0; t < T; ++t) {
    const float* probs = probs_TE + t * E;
    const float* dweights = dweights_Tk + t * k;
    const int64_t* index = index_Tk + t * k;
    float* dprobs = dlogits_TE + t * E;
    for (int64_t e = 0; e < E; ++e) dprobs[e] = daux_TE ? daux_TE[t * E + e] : 0.0f;
    float mean = 0, selected = 0;
    for (int64_t c = 0; c < k; ++c) {
      mean += dweights[c] * weights_Tk[t * k + c];
      selected += probs[index[c]];
    }
    for (int64_t c = 0; c < k; ++c) dprobs[index[c]] += normalize ? (dweights[c] - mean) / selected : dweights[c];
    Vec dot = {};
    for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA { dot += load(probs + i, part) * load(dprobs + i, part); });
    const float average = sum_lanes(dot);
    for_blocks(E, [&](int64_t i, auto part) WT_LAMBDA {
      store(dprobs + i, load(probs + i, part) * (load(dprobs + i, part) - average), part);
    });
  }
  return WT_OK;
}

}  // namespace
