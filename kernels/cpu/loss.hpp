// Cross-entropy whose gradient replaces the logits, row by row: maximum, sum of exponentials, gradient.
#pragma once
#include <new>

#include "kernels/cpu/vec.hpp"

namespace {

/// Returns the loss of one row and overwrites its logits with their gradient.
template <class E>
WT_INLINE double cross_entropy_row(E* logits, int64_t target, int64_t V, float scale) {
  if (target == kIgnoredTarget) {
    memset(logits, 0, static_cast<size_t>(V) * sizeof(E));
    return 0;
  }
  Vec top = splat(-__builtin_inff());
  for_blocks(V, [&](int64_t i, auto part)
                    WT_LAMBDA { top = max(top, masked(load(logits + i, part), part, -__builtin_inff())); });
  const float largest = max_lanes(top);
  Vec total = {};
  for_blocks(
      V, [&](int64_t i, auto part) WT_LAMBDA { total += masked(exp(load(logits + i, part) - largest), part, 0.0f); });
  const float sum = sum_lanes(total);
  const float at_target = load_one(logits + target);
  const float scaled_inverse = scale / sum;
  for_blocks(V, [&](int64_t i, auto part)
                    WT_LAMBDA { store(logits + i, exp(load(logits + i, part) - largest) * scaled_inverse, part); });
  // p - 1 from the fp32 probability: the stored one is rounded to bf16 and would cancel.
  Vec gradient = exp(splat(at_target - largest)) * scaled_inverse - scale;
  store(logits + target, gradient, Tail{1});
  return __builtin_log(static_cast<double>(sum)) + (static_cast<double>(largest) - at_target);
}

template <class E>
WtStatus cross_entropy(void*, void* logits_TV, const int64_t* target_T, int64_t T, int64_t V, float scale,
                       double* loss_sum) {
  double* const losses_T = new (std::nothrow) double[static_cast<size_t>(T)];  // summed in order at the end
  if (!losses_T) return out_of_memory("wt_cross_entropy_forward_backward", T, "losses", "T");
  for_each_row(T, 2 * V * static_cast<int64_t>(sizeof(E)), [=](int64_t t) {
    losses_T[t] = cross_entropy_row(static_cast<E*>(logits_TV) + t * V, target_T[t], V, scale);
  });
  double sum_of_losses = 0;
  for (int64_t t = 0; t < T; ++t) sum_of_losses += losses_T[t];
  delete[] losses_T;
  *loss_sum += sum_of_losses;
  return WT_OK;
}

}  // namespace
