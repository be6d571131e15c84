#include "bench/gate/level_shifts.hpp"

#include <catch2/catch.hpp>
#include <random>

using Catch::Matchers::Contains;
using Series = std::vector<double>;

namespace {

/// `count` values within `share` of `center`, from a fixed seed.
Series around(double center, std::size_t count, double share, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Series values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(center * (1 + share * (2 * (static_cast<double>(random() >> 11) * 0x1p-53) - 1)));
  return values;
}

Series joined(std::initializer_list<Series> parts) {
  Series all;
  for (const Series& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

TEST_CASE("the scatter of a series does not see its steps") {
  const Series flat = around(100, 400, 0.01), stepped = joined({around(100, 200, 0.01), around(150, 200, 0.015, 2)});
  CHECK(wt::scatter(flat) == Approx(100 * 0.01 / std::sqrt(3.0)).epsilon(0.2));
  CHECK(wt::scatter(stepped) < 2 * wt::scatter(flat));
  CHECK(wt::scatter({1, 5}) == 0);
}

TEST_CASE("a lasting step is a shift with its two levels") {
  const wt::SeriesLevels found = wt::level_shifts(joined({around(100, 30, 0.01), around(105, 10, 0.01, 2)}));
  REQUIRE(found.shifts.size() == 1);
  CHECK(found.shifts[0].index == 30);
  CHECK(found.shifts[0].ratio() == Approx(1.05).epsilon(0.01));
  CHECK(found.shifts[0].p < 1e-4);
  CHECK(found.shifts[0].rejected.empty());
}

TEST_CASE("what is too short is not yet a shift, and says how many values it needs") {
  const Series before = around(100, 30, 0.001);
  const wt::SeriesLevels three = wt::level_shifts(joined({before, around(110, 3, 0.001, 2)}));
  CHECK(three.shifts.empty());
  REQUIRE(three.rejected.size() == 1);
  CHECK_THAT(three.rejected[0].rejected, Contains("3 values since it; 4 are needed"));
  CHECK(wt::level_shifts(joined({before, around(110, 4, 0.001, 2)})).shifts.size() == 1);
}

TEST_CASE("a level that is left again after five values is none, of six it is two shifts") {
  const auto excursion = [](std::size_t length) {
    return wt::level_shifts(joined({around(100, 30, 0.001), around(110, length, 0.001, 2), around(100, 4, 0.001, 3)}));
  };
  CHECK(excursion(1).shifts.empty());
  CHECK(excursion(5).shifts.empty());
  REQUIRE(excursion(5).rejected.size() == 2);
  CHECK(excursion(5).rejected[1].rejected == "went back after 5 values");
  CHECK(excursion(6).shifts.size() == 2);
}

TEST_CASE("a step within the scatter of the series or below the floor is no shift") {
  const wt::SeriesLevels tiny = wt::level_shifts(joined({around(100, 50, 0.0005), around(100.8, 50, 0.0005, 2)}));
  CHECK(tiny.shifts.empty());
  REQUIRE(tiny.rejected.size() == 1);
  CHECK_THAT(tiny.rejected[0].rejected, Contains("less than the noise threshold of 1"));
  // 3 % of noise hides 2 %, however certain.
  CHECK(wt::level_shifts(joined({around(100, 200, 0.06), around(102, 200, 0.06, 2)})).shifts.empty());
}

TEST_CASE("one wild value is no shift") {
  Series series = around(100, 60, 0.01);
  series[20] = 50;
  series[40] = 300;
  CHECK(wt::level_shifts(series).shifts.empty());
}

TEST_CASE("noise alone gives hardly a shift") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    found += wt::level_shifts(around(100, 100, 0.03, seed)).shifts.size();
  CHECK(found <= 4);  // of 20,000 values
}
