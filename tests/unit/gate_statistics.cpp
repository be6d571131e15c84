#include "bench/gate/rank_tests.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "configs/base/error.hpp"

using wt::benjamini_hochberg;
using wt::mann_whitney_p;
using Values = std::vector<double>;

namespace {

Values range(double first, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<double>(i);
  return values;
}

// The definition, pair by pair, over every assignment of the pooled values: independent of ranks and of the table.
double enumerated_p(const Values& x, const Values& y) {
  Values all = x;
  all.insert(all.end(), y.begin(), y.end());
  const auto centred_u = [&](unsigned mask) {
    double u = 0, pairs = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < all.size(); ++j)
        if ((mask >> i & 1) && !(mask >> j & 1)) {
          u += all[i] > all[j] ? 1 : all[i] == all[j] ? 0.5 : 0;
          ++pairs;
        }
    return std::abs(u - pairs / 2);
  };
  const double seen = centred_u((1U << x.size()) - 1);
  double extreme = 0, total = 0;
  for (unsigned mask = 0; mask < (1U << all.size()); ++mask) {
    if (static_cast<std::size_t>(__builtin_popcount(mask)) != x.size()) continue;
    ++total;
    if (centred_u(mask) >= seen - 1e-9) ++extreme;
  }
  return extreme / total;
}

}  // namespace

TEST_CASE("the smallest p-value is 2/C(2n, n)") {
  const std::pair<std::size_t, double> choose[] = {{2, 6}, {3, 20}, {4, 70}, {5, 252}, {7, 3432}, {9, 48620}};
  for (const auto& [n, ways] : choose) {
    CHECK(mann_whitney_p(range(0, n), range(100, n)) == Approx(2 / ways).epsilon(1e-12));
    CHECK(mann_whitney_p(range(100, n), range(0, n)) == Approx(2 / ways).epsilon(1e-12));
  }
}

TEST_CASE("exact p-values from the counts of U") {
  // 5 a side: 1, 1, 2, 3, 5 assignments have U = 0, 1, 2, 3, 4 (partitions), so P(U <= 4) = 12/252.
  const Values x = {1, 2, 3, 5, 8}, y = {4, 6, 7, 9, 10};
  CHECK(mann_whitney_p(x, y) == Approx(24.0 / 252));
  CHECK(mann_whitney_p({1, 2, 3}, {4, 5, 6, 7}) == Approx(2.0 / 35));
}

TEST_CASE("ties and unequal sides agree with enumeration") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    Values x(2 + random() % 5), y(2 + random() % 5);
    for (double& v : x) v = random() % 4;
    for (double& v : y) v = random() % 5;
    CHECK(mann_whitney_p(x, y) == Approx(enumerated_p(x, y)).epsilon(1e-12));
    CHECK(mann_whitney_p(x, y) == Approx(mann_whitney_p(y, x)).epsilon(1e-12));
  }
}

TEST_CASE("values all equal, and an empty side, are no evidence") {
  CHECK(mann_whitney_p({1, 1, 1, 1}, {1, 1, 1, 1}) == 1);
  CHECK(mann_whitney_p(Values(40, 1.0), Values(40, 1.0)) == 1);
  CHECK(mann_whitney_p({}, {1, 2}) == 1);
}

TEST_CASE("above the exact limit: the normal approximation") {
  // 30 a side, separated: rank sum 465 against 915, variance 900 * 61 / 12.
  const double z = (915 - 465 - 0.5) / std::sqrt(900 * 61.0 / 12);
  CHECK(mann_whitney_p(range(0, 30), range(100, 30)) == Approx(std::erfc(z / std::sqrt(2.0))).epsilon(1e-9));
  // Where the two meet they agree: 25 against 25 exactly, 25 against 26 by approximation.
  Values x, y;
  for (int i = 0; i < 25; ++i) x.push_back(i), y.push_back(i + 6.5);
  const double exact = mann_whitney_p(x, y);
  y.push_back(18.6);
  CHECK(mann_whitney_p(x, y) == Approx(exact).epsilon(0.25));
}

TEST_CASE("Benjamini-Hochberg on a worked example") {
  const Values adjusted = benjamini_hochberg({0.01, 0.04, 0.03, 0.005});
  const Values expected = {0.02, 0.04, 0.04, 0.02};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(adjusted[i] == Approx(expected[i]));
  CHECK(benjamini_hochberg({}).empty());
  CHECK(benjamini_hochberg({0.9, 1.0})[0] == 1.0);
}

TEST_CASE("the interval of four a side spans all ratios, of three there is none") {
  const auto interval = wt::ratio_interval({1, 1, 1, 2}, {3, 3, 3, 4});
  REQUIRE(interval);
  CHECK(interval->low == 1.5);
  CHECK(interval->high == 4);
  CHECK(interval->estimate == 3);
  CHECK_FALSE(wt::ratio_interval({1, 2, 3}, {1, 2, 3}));
  CHECK_FALSE(wt::ratio_interval({0, 1, 2, 3}, {1, 2, 3, 4}));
}

TEST_CASE("the interval holds the true ratio about 95 times in 100") {
  std::mt19937_64 random(7);
  const auto noise = [&] {  // sum of uniforms, the same with every standard library
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    return std::exp(0.05 * sum);
  };
  for (std::size_t n : {std::size_t{9}, std::size_t{30}}) {
    int inside = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      Values x(n), y(n);
      for (double& v : x) v = noise();
      for (double& v : y) v = 1.1 * noise();
      const auto interval = wt::ratio_interval(x, y);
      inside += interval->low <= 1.1 && 1.1 <= interval->high ? 1 : 0;
    }
    CHECK(inside >= 1880);
    CHECK(inside <= 1950);  // conservative by at most the coarseness of U
  }
}

TEST_CASE("sides of many samples are thinned, not refused") {
  const auto interval = wt::ratio_interval(range(1000, 5000), range(2000, 5000));
  REQUIRE(interval);
  CHECK(interval->low < interval->estimate);
  CHECK(interval->estimate < interval->high);
  CHECK(interval->estimate == Approx(4500.0 / 3500).epsilon(0.02));
}
