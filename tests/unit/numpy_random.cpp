#include "trainer/data/numpy_random.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"

using wt::NumpyRandom;
using Ids = std::vector<std::int64_t>;

// Every expected value was printed by NumPy 2.4.6 (np.random.default_rng, np.random.PCG64).

TEST_CASE("raw 64-bit draws are PCG64's") {
  NumpyRandom random(9176);
  CHECK(random.next64() == 14864287112915649284u);
  CHECK(random.next64() == 2538383001129672880u);
  CHECK(random.next64() == 13548176007687939484u);
}

TEST_CASE("a seed of more than 32 bits fills two words of entropy") {
  CHECK(NumpyRandom(0).next64() == 11749869230777074271u);
  CHECK(NumpyRandom(std::uint64_t{1} << 33).next64() == 1490940365631266091u);
}

TEST_CASE("32-bit draws take the low half first and keep the high half across 64-bit draws") {
  NumpyRandom words(9176);
  const std::uint64_t first = words.next64();
  const std::uint64_t second = words.next64();
  NumpyRandom halves(9176);
  CHECK(halves.next32() == static_cast<std::uint32_t>(first));
  CHECK(halves.next64() == second);
  CHECK(halves.next32() == static_cast<std::uint32_t>(first >> 32));
}

TEST_CASE("permutation is Generator.permutation") {
  CHECK(NumpyRandom(9176).permutation(10) == Ids{8, 1, 2, 7, 5, 6, 9, 3, 0, 4});
  CHECK(NumpyRandom(9176).permutation(1) == Ids{0});
  CHECK(NumpyRandom(9176).permutation(0).empty());
}

TEST_CASE("integers are Generator.integers, for ranges of 32 and of 64 bits") {
  NumpyRandom small(12345);
  CHECK(Ids{small.integers(0, 10), small.integers(0, 10), small.integers(0, 10)} == Ids{6, 2, 7});
  NumpyRandom wide(12345);
  CHECK(Ids{wide.integers(-5, std::int64_t{1} << 40), wide.integers(-5, std::int64_t{1} << 40)} ==
        Ids{249958600111, 348279477702});
  NumpyRandom rejecting(7);  // 3 * 2^30 values: a quarter of all draws is rejected
  CHECK(Ids{rejecting.integers(0, 3221225472), rejecting.integers(0, 3221225472), rejecting.integers(0, 3221225472),
            rejecting.integers(0, 3221225472)} == Ids{3043751912, 2013573438, 2203897839, 1862810377});
  NumpyRandom all32(7);
  CHECK(all32.integers(0, std::int64_t{1} << 32) == 4058335883);
}

TEST_CASE("a range of one value draws nothing") {
  NumpyRandom random(9176);
  CHECK(random.integers(4, 5) == 4);
  CHECK(random.next64() == 14864287112915649284u);
}

TEST_CASE("an empty range is an error") {
  NumpyRandom random(1);
  CHECK_THROWS_WITH(random.integers(3, 3), Catch::Contains("[3, 3)") && Catch::Contains("low < high"));
}

TEST_CASE("random is 53-bit and bitwise equal to NumPy's") {
  NumpyRandom random(42);
  CHECK(random.random() == .7739560485559633);
  CHECK(random.random() == .4388784397520523);
  CHECK(random.random() == .8585979199113825);
}

TEST_CASE("uniform is low + range * random") {
  NumpyRandom random(42);
  CHECK(random.uniform(-3.5, 12.25) == 8.689807764756422);
}

TEST_CASE("interval stays inside its bound and reaches both ends") {
  NumpyRandom random(3);
  std::vector<int> seen(6, 0);
  for (int i = 0; i < 600; ++i) ++seen.at(random.interval(5));
  CHECK(*std::min_element(seen.begin(), seen.end()) > 50);
  CHECK(random.interval(0) == 0);
}

TEST_CASE("choice is Generator.choice without replacement, of small and of large shares") {
  CHECK(NumpyRandom(9176).choice(20, 6) == Ids{16, 12, 19, 2, 3, 14});
  NumpyRandom random(5);
  CHECK(random.choice(12000, 5) == Ids{9694, 9657, 8046, 5626, 271});
  const Ids most = random.choice(12000, 11000);
  CHECK(Ids{most[0], most[1], most[2], most[10998], most[10999]} == Ids{10684, 955, 3201, 3334, 647});
  CHECK(random.choice(7, 7) == Ids{3, 5, 4, 6, 1, 2, 0});
  CHECK(random.integers(0, std::int64_t{1} << 60) == 1024063954208768147);
  CHECK(random.choice(3, 0).empty());
  CHECK_THROWS_WITH(random.choice(3, 4), Catch::Contains("found 4 of 3"));
}

TEST_CASE("what is skipped is what would have been drawn") {
  for (const std::int64_t n : {0, 1, 2, 7, 64, 65, 1000, 12000}) {
    NumpyRandom drawn(n + 3), skipped(n + 3);
    drawn.next32(), skipped.next32();  // half a word waits
    drawn.permutation(n), skipped.skip_shuffle(n);
    CHECK(drawn.next32() == skipped.next32());
    for (const std::int64_t count : {n / 100, n / 3, n}) drawn.choice(n, count), skipped.skip_choice(n, count);
    CHECK(drawn.next32() == skipped.next32());
    for (std::int64_t i = 0; i < n; ++i) drawn.random();
    skipped.skip64(static_cast<std::uint64_t>(n));
    CHECK(drawn.next64() == skipped.next64());
    CHECK(drawn.next32() == skipped.next32());
  }
}
