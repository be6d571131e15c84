#include "configs/base/statistics.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"

using Catch::Detail::Approx;
using Values = std::vector<double>;

TEST_CASE("quantiles are NumPy's and R's by default") {
  const Values values = {40, 10, 30, 20};  // numpy.quantile([40, 10, 30, 20], [0.1, 0.25, 0.5, 0.9, 1])
  CHECK(wt::quantile(values, 0.1) == Approx(13));
  CHECK(wt::quantile(values, 0.25) == Approx(17.5));
  CHECK(wt::quantile(values, 0.5) == Approx(25));
  CHECK(wt::quantile(values, 0.9) == Approx(37));
  CHECK(wt::quantile(values, 1) == 40);
  CHECK(wt::median({3, 1, 2}) == 2);
  CHECK(wt::mean({1, 2, 6}) == 3);
}

TEST_CASE("the median absolute deviation minds no wild value, and is 1 of a standard normal's quartiles") {
  CHECK(wt::median_absolute_deviation({-0.67449, 0, 0.67449}) == Approx(1).epsilon(1e-4));
  CHECK(wt::median_absolute_deviation({1, 2, 3, 4, 1e9}) == Approx(1.4826));
}

TEST_CASE("trimming takes whole values from both ends, rounded up, and none of fewer than five") {
  CHECK(wt::trimmed_range({100, 6, 4, 5, 0.1}, 0.1) == std::pair(4.0, 6.0));
  CHECK(wt::trimmed_mean({100, 6, 4, 5, 0.1}, 0.1) == Approx(5));
  CHECK(wt::trimmed_range({100, 6, 4, 0.1}, 0.1) == std::pair(0.1, 100.0));
}

TEST_CASE("no value has no statistics") {
  CHECK_THROWS_AS(wt::mean({}), wt::Error);
  CHECK_THROWS_AS(wt::median({}), wt::Error);
  CHECK_THROWS_AS(wt::median_absolute_deviation({}), wt::Error);
  CHECK_THROWS_AS(wt::trimmed_range({}, 0.1), wt::Error);
  CHECK_THROWS_AS(wt::trimmed_mean({}, 0.1), wt::Error);
}

TEST_CASE("rank correlation, with ties") {
  CHECK(*wt::spearman({1, 2, 3, 4}, {10, 20, 30, 40}) == Approx(1));
  CHECK(*wt::spearman({1, 2, 3, 4}, {40, 30, 20, 10}) == Approx(-1));
  CHECK(*wt::spearman({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}) ==
        Approx(1 - 6.0 * 4 / (5 * 24)));  // 1 - 6 sum d^2 / (n (n^2 - 1))
  CHECK(*wt::spearman({1, 1, 2, 2}, {1, 2, 1, 2}) == Approx(0).margin(1e-12));
  CHECK_FALSE(wt::spearman({1, 2}, {1, 2}));
  CHECK_FALSE(wt::spearman({1, 1, 1}, {1, 2, 3}));
}
