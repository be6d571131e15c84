#include "trainer/data/numpy_random.hpp"

#include <array>
#include <bit>
#include <limits>
#include <numeric>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

// SeedSequence's constants (O'Neill's seed_seq_fe, "Developing a seed_seq alternative", 2015).
constexpr std::uint32_t kInitA = 0x43b0d7e5, kMultA = 0x931e8875;
constexpr std::uint32_t kInitB = 0x8b51f9dd, kMultB = 0x58f38ded;
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

void NumpyRandom::advance() {
  constexpr Word128 kMultiplier = (static_cast<Word128>(0x2360ed051fc65da4) << 64) | 0x4385df649fccf645;
  state_ = state_ * kMultiplier + increment_;
}

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
  if (low >= high) {
    throw_error(Code::usage,
                "random integers: found the range [{}, {}), allowed are ranges with low < high; widen the range", low,
                high);
  }
  const auto offset = static_cast<std::uint64_t>(low);
  const std::uint64_t largest = static_cast<std::uint64_t>(high) - offset - 1;
  std::uint64_t drawn = 0;
  if (largest == 0) return low;
  if (largest == std::numeric_limits<std::uint32_t>::max()) {
    drawn = next32();
  } else if (largest < std::numeric_limits<std::uint32_t>::max()) {
    const std::uint64_t count = largest + 1;
    const std::uint64_t threshold = (std::uint64_t{1} << 32) % count;
    std::uint64_t product = next32() * count;
    while (static_cast<std::uint32_t>(product) < threshold) product = next32() * count;
    drawn = product >> 32;
  } else if (largest == std::numeric_limits<std::uint64_t>::max()) {
    drawn = next64();
  } else {
    const std::uint64_t count = largest + 1;
    const std::uint64_t threshold = (0 - count) % count;  // 2^64 mod count
    Word128 product = static_cast<Word128>(next64()) * count;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Word128>(next64()) * count;
    drawn = static_cast<std::uint64_t>(product >> 64);
  }
  return static_cast<std::int64_t>(offset + drawn);
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

}  // namespace wt
