#include "trainer/data/numpy_random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "configs/base/error.hpp"

namespace wt {
namespace {

// SeedSequence's constants (O'Neill's seed_seq_fe, "Developing a seed_seq alternative", 2015).
constexpr std::uint32_t kInitA = 0x43b0d7e5, kMultA = 0x931e8875;
constexpr std::uint32_t kInitB = 0x8b51f9dd, kMultB = 0x58f38ded;
__extension__ using PcgWord = unsigned __int128;
constexpr PcgWord kMultiplier = (static_cast<PcgWord>(0x2360ed051fc65da4) << 64) | 0x4385df649fccf645;
constexpr std::uint32_t kMixLeft = 0xca01f9dd, kMixRight = 0x4973f715;

std::uint32_t scramble(std::uint32_t value, std::uint32_t& constant, std::uint32_t multiplier) {
  value ^= constant;
  constant *= multiplier;
  value *= constant;
  return value ^ (value >> 16);
}

std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t mixed = kMixLeft * x - kMixRight * y;
  return mixed ^ (mixed >> 16);
}

/// SeedSequence(seed).generate_state(4, uint64).
std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  std::array<std::uint32_t, 4> pool = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0, 0};
  std::uint32_t constant = kInitA;
  for (auto& word : pool) word = scramble(word, constant, kMultA);
  for (std::size_t from = 0; from < pool.size(); ++from) {
    for (std::size_t to = 0; to < pool.size(); ++to) {
      if (from != to) pool[to] = mix(pool[to], scramble(pool[from], constant, kMultA));
    }
  }
  std::array<std::uint64_t, 4> words{};
  constant = kInitB;
  for (std::size_t i = 0; i < 2 * words.size(); ++i) {
    const std::uint64_t word = scramble(pool[i % pool.size()], constant, kMultB);
    words[i / 2] |= word << (32 * (i % 2));
  }
  return words;
}

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const auto words = seed_words(seed);
  const Word128 start = (static_cast<Word128>(words[0]) << 64) | words[1];
  increment_ = (((static_cast<Word128>(words[2]) << 64) | words[3]) << 1) | 1;
  advance();
  state_ += start;
  advance();
}

void NumpyRandom::advance() { state_ = state_ * kMultiplier + increment_; }

std::uint64_t NumpyRandom::next64() {
  advance();
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  const auto low = static_cast<std::uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

std::uint32_t NumpyRandom::next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const std::uint64_t word = next64();
  has_half_ = true;
  half_ = static_cast<std::uint32_t>(word >> 32);
  return static_cast<std::uint32_t>(word);
}

double NumpyRandom::random() { return static_cast<double>(next64() >> 11) * 0x1p-53; }

double NumpyRandom::uniform(double low, double high) {
  const double range = high - low;
  return low + range * random();
}

std::int64_t NumpyRandom::integers(std::int64_t low, std::int64_t high) {
  if (low >= high)
    throw_usage("random integers: found the range [{}, {}), allowed are ranges with low < high; widen the range", low,
                high);
  const auto offset = static_cast<std::uint64_t>(low);
  return static_cast<std::int64_t>(offset + bounded(static_cast<std::uint64_t>(high) - offset - 1));
}

std::uint64_t NumpyRandom::bounded(std::uint64_t max) {
  if (max == 0) return 0;
  if (max == std::numeric_limits<std::uint32_t>::max()) return next32();
  if (max == std::numeric_limits<std::uint64_t>::max()) return next64();
  const std::uint64_t count = max + 1;
  // The rejection threshold, 2^32 (or 2^64) mod count, is below count, so that the division for it is rarely needed.
  if (max < std::numeric_limits<std::uint32_t>::max()) {
    std::uint64_t product = next32() * count;
    if (static_cast<std::uint32_t>(product) < count) {
      const std::uint64_t threshold = (std::uint64_t{1} << 32) % count;
      while (static_cast<std::uint32_t>(product) < threshold) product = next32() * count;
    }
    return product >> 32;
  }
  Word128 product = static_cast<Word128>(next64()) * count;
  if (static_cast<std::uint64_t>(product) < count) {
    const std::uint64_t threshold = (0 - count) % count;  // 2^64 mod count
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Word128>(next64()) * count;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t NumpyRandom::interval(std::uint64_t max) {
  if (max == 0) return 0;
  const std::uint64_t mask = std::numeric_limits<std::uint64_t>::max() >> std::countl_zero(max);
  const bool narrow = max <= std::numeric_limits<std::uint32_t>::max();
  std::uint64_t value = 0;
  do {
    value = (narrow ? next32() : next64()) & mask;
  } while (value > max);
  return value;
}

std::vector<std::int64_t> NumpyRandom::permutation(std::int64_t n) {
  std::vector<std::int64_t> items(static_cast<std::size_t>(n));
  std::iota(items.begin(), items.end(), std::int64_t{0});
  shuffle(std::span(items));
  return items;
}

/// Generator.choice without replacement uses the tail of a shuffled list for large shares of large populations, and
/// Floyd's method (1987) otherwise.
static bool draws_by_tail(std::int64_t population, std::int64_t count) {
  return population > 10'000 && count > population / 50;
}

std::vector<std::int64_t> NumpyRandom::choice(std::int64_t population, std::int64_t count) {
  if (count < 0 || count > population)
    throw_usage("random choice: found {} of {}, allowed is 0 to all of them; choose fewer", count, population);
  const auto draw = [&](std::int64_t last) {
    return static_cast<std::int64_t>(bounded(static_cast<std::uint64_t>(last)));
  };
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  if (draws_by_tail(population, count)) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(population));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    for (std::int64_t i = population - 1; i >= std::max<std::int64_t>(population - count, 1); --i)
      std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(draw(i))]);
    std::copy(all.end() - count, all.end(), out.begin());
    return out;
  }
  std::unordered_set<std::int64_t> chosen;
  chosen.reserve(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t last = population - count + static_cast<std::int64_t>(i), drawn = draw(last);
    out[i] = chosen.insert(drawn).second ? drawn : last;
    if (out[i] == last) chosen.insert(last);
  }
  for (std::int64_t i = count - 1; i >= 1; --i)
    std::swap(out[static_cast<std::size_t>(i)], out[static_cast<std::size_t>(draw(i))]);
  return out;
}

void NumpyRandom::skip_choice(std::int64_t population, std::int64_t count) {
  const std::int64_t first = population - count;
  if (draws_by_tail(population, count)) {
    for (std::int64_t i = population - 1; i >= std::max<std::int64_t>(first, 1); --i)
      bounded(static_cast<std::uint64_t>(i));
    return;
  }
  for (std::int64_t last = first; last < population; ++last) bounded(static_cast<std::uint64_t>(last));
  for (std::int64_t i = count - 1; i >= 1; --i) bounded(static_cast<std::uint64_t>(i));
}

void NumpyRandom::skip_shuffle(std::int64_t items) {
  std::int64_t i = items - 1;
  for (; i > std::numeric_limits<std::uint32_t>::max(); --i) interval(static_cast<std::uint64_t>(i));
  // One mask for all i in the same power-of-two range; a draw above i is repeated.
  for (auto left = static_cast<std::uint32_t>(std::max<std::int64_t>(i, 0)); left > 0;) {
    const std::uint32_t mask = std::numeric_limits<std::uint32_t>::max() >> std::countl_zero(left);
    const std::uint32_t half = mask >> 1;
    while (left > half) left -= (next32() & mask) <= left ? 1 : 0;
  }
}

void NumpyRandom::skip64(std::uint64_t draws) {
  Word128 multiplier = kMultiplier, plus = increment_, all_multiplier = 1, all_plus = 0;
  for (; draws > 0; draws >>= 1) {
    if ((draws & 1) != 0) {
      all_multiplier *= multiplier;
      all_plus = all_plus * multiplier + plus;
    }
    plus = (multiplier + 1) * plus;
    multiplier *= multiplier;
  }
  state_ = all_multiplier * state_ + all_plus;
}

}  // namespace wt
