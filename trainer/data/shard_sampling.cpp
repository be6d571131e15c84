#include "trainer/data/shard_sampling.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "trainer/data/numpy_random.hpp"

namespace wt {
namespace {

/// The set of items in the first `count` places after a shuffle of `items`, without storing the items. Draws are undone
/// from the last shuffle step (the lowest place) to the first: when place i is undone, an item of the set may move to
/// place i. One bit per item instead of a word.
class FrontOfShuffle {
 public:
  FrontOfShuffle(std::int64_t items, std::int64_t count, NumpyRandom random)
      : bits_(static_cast<std::size_t>(ceil_div(items, 64))) {
    for (std::int64_t i = 0; i < count; ++i) set(i);
    // Draws are made from the last place down, and needed from place `count` up: store states at the ends of chunks.
    std::vector<std::pair<std::int64_t, NumpyRandom>> chunks;  // the place of the chunk's first draw
    for (std::int64_t i = items - 1; i >= std::max<std::int64_t>(count, 1); --i) {
      if ((items - 1 - i) % kChunk == 0) chunks.emplace_back(i, random);
      random.interval(static_cast<std::uint64_t>(i));
    }
    std::vector<std::int64_t> drawn;
    for (; !chunks.empty(); chunks.pop_back()) {
      auto& [last, replay] = chunks.back();
      const std::int64_t first = std::max({last - kChunk + 1, count, std::int64_t{1}});
      drawn.resize(static_cast<std::size_t>(last - first + 1));
      for (std::int64_t i = last; i >= first; --i)
        drawn[static_cast<std::size_t>(i - first)] =
            static_cast<std::int64_t>(replay.interval(static_cast<std::uint64_t>(i)));
      for (std::int64_t i = first; i <= last; ++i) undo(i, drawn[static_cast<std::size_t>(i - first)]);
    }
  }

  /// Number of items of the set in [begin, end).
  std::int64_t count(std::int64_t begin, std::int64_t end) const {
    std::int64_t sum = 0;
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t stop = std::min(end, (i / 64 + 1) * 64);
      std::uint64_t word = bits_[static_cast<std::size_t>(i / 64)] >> (i % 64);
      if (stop - i < 64) word &= (std::uint64_t{1} << (stop - i)) - 1;
      sum += std::popcount(word);
      i = stop;
    }
    return sum;
  }

 private:
  static constexpr std::int64_t kChunk = 1 << 20;

  bool has(std::int64_t i) const { return (bits_[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) != 0; }
  void set(std::int64_t i) { bits_[static_cast<std::size_t>(i / 64)] |= std::uint64_t{1} << (i % 64); }
  void clear(std::int64_t i) { bits_[static_cast<std::size_t>(i / 64)] &= ~(std::uint64_t{1} << (i % 64)); }
  /// Undoes the exchange of places `i` and `other` <= i.
  void undo(std::int64_t i, std::int64_t other) {
    if (other == i || !has(other)) return;
    clear(other);
    set(i);
  }

  std::vector<std::uint64_t> bits_;
};

/// Adds picks of more than one sample. Their order matters, because the last one may be cut.
void add_picks(std::span<const std::int64_t> shard_sizes, std::int64_t left, std::int64_t granularity,
               NumpyRandom random, std::vector<std::int64_t>& out) {
  constexpr std::uint32_t kLast = std::uint32_t{1} << 31;  // marks a shard's last pick, which may be smaller
  std::vector<std::uint32_t> picks;
  for (std::size_t shard = 0; shard < shard_sizes.size(); ++shard) {
    picks.insert(picks.end(), static_cast<std::size_t>(ceil_div(shard_sizes[shard], granularity)),
                 static_cast<std::uint32_t>(shard));
    if (shard_sizes[shard] > 0) picks.back() |= kLast;
  }
  random.shuffle(std::span(picks));
  for (auto pick = picks.begin(); left > 0; ++pick) {
    const std::size_t shard = *pick & ~kLast;
    const std::int64_t size = shard_sizes[shard];
    const std::int64_t whole =
        (*pick & kLast) != 0 ? size - (ceil_div(size, granularity) - 1) * granularity : granularity;
    const std::int64_t taken = std::min(left, whole);
    out[shard] += taken;
    left -= taken;
  }
}

}  // namespace

std::vector<std::int64_t> samples_of_shards(std::span<const std::int64_t> shard_sizes, std::int64_t choose,
                                            std::int64_t granularity, std::uint64_t seed) {
  const std::int64_t samples = std::accumulate(shard_sizes.begin(), shard_sizes.end(), std::int64_t{0});
  const bool negative = std::ranges::any_of(shard_sizes, [](auto size) { return size < 0; });
  if (negative || samples < 1 || choose < 0 || granularity < 1 || shard_sizes.size() >= std::size_t{1} << 31)
    throw_usage(
        "sampling: found {} samples of {} in {} shards, {} at once, allowed are 0 or more of at least one, at least "
        "one at once; check the data set's index.json, choose and sampling_granularity",
        choose, samples, shard_sizes.size(), granularity);
  std::vector<std::int64_t> out(shard_sizes.begin(), shard_sizes.end());
  for (std::int64_t& size : out) size *= choose / samples;
  const std::int64_t left = choose % samples;
  if (left == 0) return out;
  if (granularity > 1) {
    add_picks(shard_sizes, left, granularity, NumpyRandom(seed), out);
    return out;
  }
  const FrontOfShuffle picked(samples, left, NumpyRandom(seed));
  std::int64_t begin = 0;
  for (std::size_t shard = 0; shard < out.size(); ++shard) {
    out[shard] += picked.count(begin, begin + shard_sizes[shard]);
    begin += shard_sizes[shard];
  }
  return out;
}

}  // namespace wt
