// What the kernels of the bandwidth benchmark read and write, larger than any cache.
#pragma once
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace wt::bandwidth {

constexpr int64_t kTokens = 8192, kWidth = 2048, kTopK = 4, kRows = kTokens * kTopK;
const WtStream kCpu{-1, nullptr};

/// Lines of the cache begin where arrays do, as LibTorch's do.
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

/// Arrays for every kernel, as large as the largest needs: N rows of width 2 D.
struct Arrays {
  Array<float> in, also_in, out, scale, weights, dweights, rstd, gain_gradient;
  Array<unsigned char> codes;
  std::vector<int64_t> order, inverse;
  Arrays()
      : in(size_t(kRows * kWidth)), also_in(in.size()), out(in.size()), scale(in.size() / 64), weights(size_t(kRows), 0.25f),
        dweights(size_t(kRows)), rstd(size_t(kRows)), gain_gradient(size_t(kWidth)), codes(in.size()), order(size_t(kRows)),
        inverse(size_t(kRows)) {
    std::mt19937 random{1};
    std::vector<int64_t> expert(order.size());
    for (int64_t& e : expert) e = random() % 64;
    wt_sort_by_expert(kCpu, expert.data(), nullptr, kRows, 64, order.data(), inverse.data(), nullptr);
  }
  /// Small numbers in either type: bf16 reads two of them in a float.
  void fill() {
    std::mt19937 random{2};
    for (Array<float>* array : {&in, &also_in})
      for (float& x : *array) {
        const uint32_t bits = (0x3c003c00u + (random() & 0x83ff83ffu));
        std::memcpy(&x, &bits, sizeof x);
      }
  }
};

}  // namespace wt::bandwidth
