// Hashes for keys of tables, comparison of results and configurations, and seeds. Not for secrets.
#pragma once
#define XXH_INLINE_ALL  // a function call would cost more than hashing a key of some 50 bytes
#include <xxhash.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace wt {

/// XXH3 of the values' bytes. T must have no padding. To chain hashes, pass one as the seed of the next.
template <class T, std::size_t n>
std::uint64_t hash_of(std::span<const T, n> values, std::uint64_t seed = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  return XXH3_64bits_withSeed(values.data(), values.size_bytes(), seed);
}
inline std::uint64_t hash_of(std::string_view text) { return hash_of(std::span(text)); }

/// SplitMix64 (Steele, Lea, Flood 2014): unrelated seeds from consecutive numbers.
inline std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace wt
