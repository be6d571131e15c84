// Inputs and outputs of the kernels in the bandwidth benchmark, larger than any cache.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace wt::bandwidth {

constexpr int64_t kTokens = 8192, kWidth = 2048, kTopK = 4, kRows = kTokens * kTopK;
constexpr int64_t kVocabulary = 32768, kLossRows = kRows * kWidth / kVocabulary;
constexpr int64_t kSequences = 8, kPositions = kRows / kSequences, kHead = 128, kKeyHeads = 2,
                  kQueryHeads = kWidth / kHead - 2 * kKeyHeads;
constexpr int64_t kParameters = kRows * kWidth / 4;  // p, m, v and g are a quarter of an array each
const WtStream kCpu{-1, nullptr};

/// Allocates arrays at the begin of a cache line, as LibTorch does.
template <class V>
struct Aligned {
  using value_type = V;
  static constexpr std::align_val_t kLine{64};
  V* allocate(size_t n) { return static_cast<V*>(operator new(n * sizeof(V), kLine)); }
  void deallocate(V* p, size_t) { operator delete(p, kLine); }
  bool operator==(const Aligned&) const { return true; }
};
template <class V>
using Array = std::vector<V, Aligned<V>>;

/// Arrays for every kernel, sized for the largest: N rows of width 2 D.
struct Arrays {
  Array<float> in, also_in, out, scale, weights, dweights, rstd, gain_gradient, cos, sin;
  Array<unsigned char> codes;
  std::vector<int64_t> order, inverse, target;
  double loss = 0;
  Arrays()
      : in(size_t(kRows * kWidth)),
        also_in(in.size()),
        out(in.size()),
        scale(in.size() / 64),
        weights(size_t(kRows), 0.25f),
        dweights(size_t(kRows)),
        rstd(size_t(kRows)),
        gain_gradient(size_t(kWidth)),
        cos(size_t(kPositions * kHead / 2)),
        sin(cos.size()),
        codes(in.size()),
        order(size_t(kRows)),
        inverse(size_t(kRows)),
        target(size_t(kLossRows)) {
    std::mt19937 random{1};
    std::vector<int64_t> expert(order.size());
    for (int64_t& e : expert) e = random() % 64;
    wt_sort_by_expert(kCpu, expert.data(), nullptr, kRows, 64, order.data(), inverse.data(), nullptr);
    for (int64_t& t : target) t = random() % kVocabulary;
    std::vector<double> frequency;
    for (int64_t i = 0; i < kHead / 2; ++i) frequency.push_back(std::pow(1e4, -2.0 * double(i) / double(kHead)));
    wt_rope_table(kPositions, kHead, frequency.data(), 1, cos.data(), sin.data());
  }
  /// Small numbers in either type: read as bf16, each float is two of them.
  void fill() {
    std::mt19937 random{2};
    for (Array<float>* array : {&in, &also_in})
      for (float& x : *array) {
        const uint32_t bits = (0x3c003c00u + (random() & 0x83ff83ffu));
        std::memcpy(&x, &bits, sizeof x);
      }
  }
};

/// Heads-first queries, keys and values, consecutive in an array.
struct Split {
  unsigned char *q, *k, *v;
};
inline Split split(Array<float>& array, WtDtype dtype) {
  const int64_t head = kRows * kHead * (dtype == WT_FP32 ? 4 : 2);
  unsigned char* const q = reinterpret_cast<unsigned char*>(array.data());
  return {q, q + kQueryHeads * head, q + (kQueryHeads + kKeyHeads) * head};
}

constexpr float kLossScale = kVocabulary;  // gradients of about one; at 1 / vocabulary an error would not show
constexpr double kRate = 0.1, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8, kDecay = 0.1;
constexpr int64_t kStep = 3;

}  // namespace wt::bandwidth
