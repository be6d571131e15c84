// NumPy's default_rng(seed): PCG64 (XSL-RR 128/64, O'Neill 2014) seeded through SeedSequence, with the Generator
// methods that Mosaic Streaming's sample order uses. Equal to NumPy draw for draw. Golden vectors pin this, because
// NumPy itself promises no stream stability between versions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace wt {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);

  std::uint64_t next64();
  /// The low half of a 64-bit draw, then its high half. Calls of next64() in between do not affect the waiting half.
  std::uint32_t next32();
  /// 53 random bits in [0, 1).
  double random();
  /// low + (high - low) * random().
  double uniform(double low, double high);
  /// In [low, high), by Lemire's multiply-and-reject. Throws Error{usage} unless low < high.
  std::int64_t integers(std::int64_t low, std::int64_t high);
  /// In [0, max], by masking and rejecting: used by shuffle.
  std::uint64_t interval(std::uint64_t max);

  /// Fisher-Yates from the back, as Generator.shuffle does for lists and for one-dimensional arrays.
  template <typename T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i-- > 1;) {
      using std::swap;
      swap(items[i], items[interval(i)]);
    }
  }
  /// shuffle of 0..n-1.
  std::vector<std::int64_t> permutation(std::int64_t n);
  /// `count` different numbers of 0..population-1, in the order of choice(population, count, replace=False). Throws
  /// Error{usage} unless 0 <= count <= population.
  std::vector<std::int64_t> choice(std::int64_t population, std::int64_t count);

  /// Advance the state as the method of that name would, without a result.
  void skip_shuffle(std::int64_t items);
  void skip_choice(std::int64_t population, std::int64_t count);
  /// Skips `draws` calls of next64() or random(), in O(log draws) (Brown 1994, "Random number generation with arbitrary
  /// strides").
  void skip64(std::uint64_t draws);

 private:
  __extension__ using Word128 = unsigned __int128;
  void advance();
  /// In [0, max], by multiplying and rejecting: used by integers and choice.
  std::uint64_t bounded(std::uint64_t max);

  Word128 state_ = 0;
  Word128 increment_ = 0;
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

}  // namespace wt
