// A rank's share of a batch, split into microbatches of one size and a last one with the remainder. Sizes are in
// sequences or in tokens.
#pragma once
#include <algorithm>
#include <cstdint>

namespace wt {

struct Microbatches {
  std::int64_t count = 1;
  std::int64_t each;  ///< size of all but the last
  std::int64_t last;  ///< 1 to `each`

  Microbatches(std::int64_t count, std::int64_t each, std::int64_t last) : count(count), each(each), last(last) {}
  /// One microbatch of this size.
  Microbatches(std::int64_t size) : each(size), last(size) {}
  static Microbatches split(std::int64_t batch, std::int64_t size) {
    const std::int64_t count = (batch + size - 1) / size;
    return {count, size, batch - (count - 1) * size};
  }

  bool even() const { return last == each; }
  /// Size of microbatch m = 0, 1, ...
  std::int64_t of(std::int64_t m) const { return m + 1 < count ? each : last; }
  /// The last n microbatches.
  Microbatches at_most(std::int64_t n) const { return {std::min(count, n), each, last}; }
};

}  // namespace wt
