#include "configs/base/hash.hpp"

#include <array>
#include <catch2/catch.hpp>

TEST_CASE("hashes are XXH3's, of the bytes, and a seed chains them") {
  CHECK(wt::hash_of("") == 0x2d06800538d394c2);  // python-xxhash: xxh3_64(b"")
  const std::array<double, 2> numbers = {1, 2}, swapped = {2, 1};
  const auto hash = [](const std::array<double, 2>& values, std::uint64_t seed) {
    return wt::hash_of(std::span(values), seed);
  };
  CHECK(hash(numbers, 0) == hash({1, 2}, 0));
  CHECK(hash(numbers, 0) != hash(swapped, 0));
  CHECK(hash(numbers, 0) != hash(numbers, 1));
}

TEST_CASE("SplitMix64's first numbers of seed 0") {  // prng.di.unimi.it/splitmix64.c
  CHECK(wt::splitmix64(0) == 0xe220a8397b1dcdaf);
  CHECK(wt::splitmix64(0x9e3779b97f4a7c15) == 0x6e789e6aa1b965f4);
}
