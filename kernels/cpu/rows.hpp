// Moving token rows to their experts and back: counting sort, gather, weighted combine, and their gradients.
#pragma once
#include <new>

#include "kernels/cpu/vec.hpp"

namespace {

inline WtStatus sort_by_expert(void*, const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                               int64_t* order, int64_t* inverse, int64_t* slot_counts) {
  int64_t* next = new (std::nothrow) int64_t[static_cast<size_t>(E) + 1]();
  if (!next) return out_of_memory("wt_sort_by_expert", E, "counters", "E");
  for (int64_t i = 0; i < n; ++i) ++next[1 + (slot_of_expert ? slot_of_expert[index[i]] : index[i])];
  for (int64_t s = 0; slot_counts && s < E; ++s) slot_counts[s] = next[s + 1];
  for (int64_t s = 0; s < E; ++s) next[s + 1] += next[s];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = next[slot_of_expert ? slot_of_expert[index[i]] : index[i]]++;
    order[j] = i;
    inverse[i] = j;
  }
  delete[] next;
  return WT_OK;
}

/// Copies a row of `bytes`; streams only whole cache lines.
WT_INLINE void copy_row(void* y, const void* x, int64_t bytes, bool streamed) {
  if (!streamed) {
    memcpy(y, x, static_cast<size_t>(bytes));
    return;
  }
  for_blocks(bytes / static_cast<int64_t>(sizeof(float)), [&](int64_t i, auto part) WT_LAMBDA {
    put(static_cast<float*>(y) + i, load(static_cast<const float*>(x) + i, part), part, true);
  });
}

template <class E>
WtStatus gather(void*, const void* x_TD, const int64_t* index, int64_t divisor, int64_t n, int64_t D, void* y_ND) {
  const E* x = static_cast<const E*>(x_TD);
  E* y = static_cast<E*>(y_ND);
  const int64_t row_bytes = D * static_cast<int64_t>(sizeof(E));
  const bool streamed = streams<E>(y, n, D);
  // Token by token: a row is read from memory once, and from the cache for its other choices.
  int64_t* inverse = divisor > 1 ? new (std::nothrow) int64_t[static_cast<size_t>(n)] : nullptr;
  for (int64_t j = 0; inverse && j < n; ++j) inverse[j] = -1;
  bool permutation = inverse != nullptr;
  for (int64_t j = 0; permutation && j < n; ++j) {
    permutation = inverse[index[j]] == -1;
    inverse[index[j]] = j;
  }
  if (permutation)
    for_each_row(n / divisor, (divisor + 1) * row_bytes, [=](int64_t t) {
      for (int64_t c = 0; c < divisor; ++c) copy_row(y + inverse[t * divisor + c] * D, x + t * D, row_bytes, streamed);
    });
  else
    for_each_row(n, 2 * row_bytes,
                 [=](int64_t j) { copy_row(y + j * D, x + index[j] / divisor * D, row_bytes, streamed); });
  delete[] inverse;
  return WT_OK;
}

template <class E>
WtStatus permute_backward(void*, const void* dy, const int64_t* inverse_Tk, int64_t T, int64_t k, int64_t D,
                          bool accumulate, void* dx_TD) {
  const E* rows = static_cast<const E*>(dy);
  const bool streamed = !accumulate && streams<E>(dx_TD, T, D);
  for_each_row(T, (k + 1) * D * static_cast<int64_t>(sizeof(E)), [=](int64_t t) {
    const int64_t* inverse = inverse_Tk + t * k;
    E* dx = static_cast<E*>(dx_TD) + t * D;
    for_blocks(D, [&](int64_t i, auto part) WT_LAMBDA {
      Vec sum = accumulate ? load(dx + i, part) : Vec{};
      for (int64_t c = 0; c < k; ++c)
        if (inverse[c] != WT_DROPPED) sum += load(rows + inverse[c] * D + i, part);
      put(dx + i, sum, part, streamed);
    });
  });
  return WT_OK;
}

template <class E>
WtStatus combine_forward(void*, const void* rows_ND, const int64_t* inverse_Tk, const float* weights_Tk,
                         const void* residual_TD, int64_t T, int64_t k, int64_t D, void* out_TD) {
  const E* rows = static_cast<const E*>(rows_ND);
  const E* residual = static_cast<const E*>(residual_TD);
  const bool streamed = out_TD != residual_TD && streams<E>(out_TD, T, D);
  for_each_row(T, (k + 2) * D * static_cast<int64_t>(sizeof(E)), [=](int64_t t) {
    const int64_t* inverse = inverse_Tk + t * k;
    const float* weights = weights_Tk + t * k;
    E* out = static_cast<E*>(out_TD) + t * D;
    for_blocks(D, [&](int64_t i, auto part) WT_LAMBDA {
      Vec sum = residual ? load(residual + t * D + i, part) : Vec{};
      for (int64_t c = 0; c < k; ++c)
        if (inverse[c] != WT_DROPPED) sum += load(rows + inverse[c] * D + i, part) * weights[c];
      put(out + i, sum, part, streamed);
    });
  });
  return WT_OK;
}

template <class E>
WtStatus combine_backward(void*, const void* dout_TD, const void* rows_ND, const int64_t* inverse_Tk,
                          const float* weights_Tk, int64_t T, int64_t k, int64_t D, void* drows_ND,
                          float* dweights_Tk) {
  const bool streamed = drows_ND != rows_ND && streams<E>(drows_ND, T * k, D);
  for_each_row(T * k, 2 * D * static_cast<int64_t>(sizeof(E)), [=](int64_t i) {
    dweights_Tk[i] = 0;
    if (inverse_Tk[i] == WT_DROPPED) return;
    const E* dout = static_cast<const E*>(dout_TD) + i / k * D;
    const E* row = static_cast<const E*>(rows_ND) + inverse_Tk[i] * D;
    E* drow = static_cast<E*>(drows_ND) + inverse_Tk[i] * D;
    const float weight = weights_Tk[i];
    Vec dot = {};
    for_blocks(D, [&](int64_t d, auto part) WT_LAMBDA {
      const Vec gradient = load(dout + d, part);
      dot += gradient * load(row + d, part);
      put(drow + d, gradient * weight, part, streamed);
    });
    dweights_Tk[i] = sum_lanes(dot);
  });
  return WT_OK;
}

}  // namespace
