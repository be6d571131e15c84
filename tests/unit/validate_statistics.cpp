// Figures that judge predictions, against closed forms.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>

#include "configs/base/error.hpp"
#include "sim/validate/judged.hpp"

#include "sim/statistics/intervals.hpp"

using namespace wt;

namespace {

Judged judged(double measured, double predicted, const std::string& group = "g", const std::string& choice = "") {
  Judged j;
  j.group = group;
  j.regime = std::string("r");  // GCC 12 sees an overflow in the assignment of a literal here; there is none
  j.choice = choice;
  j.measured = measured;
  j.forecast.value = predicted;
  return j;
}

}  // namespace

TEST_CASE("errors are fractions of what was measured") {
  std::vector<Judged> rows = {judged(1, 1.1), judged(2, 1.6), judged(4, 4), judged(8, 12, "h")};
  rows.push_back(judged(1, 1));
  rows.back().forecast.value.reset();
  const Accuracy a = accuracy(rows, &Judged::forecast);
  CHECK(a.n == 4);
  CHECK(a.abstained == 1);
  CHECK(a.groups == 2);
  CHECK(*a.mape == Approx((0.1 + 0.2 + 0 + 0.5) / 4));
  CHECK(*a.median_ape == Approx(0.15));
  CHECK(*a.p90_ape == Approx(0.2 + 0.7 * 0.3));
  CHECK(*a.bias == Approx(0.05));
  CHECK(*a.spearman == Approx(1));
  CHECK_FALSE(a.regret);
  CHECK(*a.coverage80 == 0);
}

TEST_CASE("each origin counts once in its means, however many rows it published") {
  std::vector<Judged> rows = {judged(1, 1.1), judged(1, 1.2), judged(1, 1.4), judged(1, 1.6)};
  for (std::size_t i = 0; i < 3; ++i) rows[i].origin = "many";
  rows[3].origin = "one";
  for (std::size_t i : {0, 3}) rows[i].forecast.low = 0.9, rows[i].forecast.high = 1.5;
  const Accuracy a = accuracy(rows, &Judged::forecast);
  CHECK(a.origins == 2);
  CHECK(*a.origin_median_ape == Approx((0.2 + 0.6) / 2));
  CHECK(*a.origin_coverage80 == Approx((1.0 / 3 + 1) / 2));
  CHECK(*a.median_ape == Approx(0.3));
}

TEST_CASE("without a prediction there are no figures, only counts") {
  std::vector<Judged> rows = {judged(1, 1)};
  const Accuracy a = accuracy(rows, &Judged::baseline);
  CHECK(a.n == 0);
  CHECK(a.abstained == 1);
  CHECK_FALSE(a.mape);
  CHECK_FALSE(a.coverage80);
  CHECK_FALSE(a.origin_median_ape);
}

TEST_CASE("regret is what the choice predicted best costs over the best one, a mean over choices") {
  const Accuracy a = accuracy({judged(10, 3, "g", "a"), judged(8, 4, "g", "a"), judged(5, 1, "g", "b"),
                               judged(6, 2, "g", "b"), judged(1, 1, "g", "alone")},
                              &Judged::forecast);
  CHECK(*a.regret == Approx((10.0 / 8 - 1 + 0) / 2));
}

TEST_CASE("conformal bounds are the order statistics that a further value falls between four times of five") {
  std::vector<double> values;
  for (int i = 1; i <= 19; ++i) values.push_back(i);
  CHECK(conformal_bounds(values) == std::make_pair(2.0, 18.0));  // 2 of 20 places below, 2 above
  CHECK(conformal_bounds({3, 1, 2}) == std::make_pair(1.0, 3.0));
  CHECK(symmetric_bounds({-9, 1, 2, -3, 4, 5, 6, 7, 8}) == std::make_pair(-8.0, 8.0));  // the eighth of ten places
  CHECK(symmetric_bounds({-2}) == std::make_pair(-2.0, 2.0));
  CHECK_THROWS_AS(conformal_bounds({}), Error);
  CHECK_THROWS_AS(symmetric_bounds({}), Error);
}

TEST_CASE("a row's own group has no part in its interval") {
  std::vector<Judged> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(judged(1, 1, "calm"));
  for (int i = 0; i < 20; ++i) rows.push_back(judged(i % 2 ? 2 : 0.5, 1, "wild"));
  add_intervals(rows, &Judged::forecast);
  CHECK(rows.front().forecast.low == Approx(0.5));
  CHECK(rows.front().forecast.high == Approx(2));
  CHECK(rows.back().forecast.low == Approx(1));
  CHECK(rows.back().forecast.high == Approx(1));
  std::vector<Judged> alone = {judged(1, 1)};
  add_intervals(alone, &Judged::forecast);
  CHECK(alone[0].forecast.low == Approx(0.5));
  CHECK(alone[0].forecast.high == Approx(2));
}

TEST_CASE("intervals from exchangeable errors cover about four rows of five") {
  std::vector<Judged> rows;
  for (int group = 0; group < 20; ++group)
    for (int i = 0; i < 10; ++i) {
      const double noise = std::sin(12.9898 * (group * 10 + i)) * 43758.5453;  // a hash, uniform in 0..1
      rows.push_back(judged(std::exp(0.3 * (noise - std::floor(noise) - 0.5)), 1, std::to_string(group)));
    }
  add_intervals(rows, &Judged::forecast);
  const double coverage = *accuracy(rows, &Judged::forecast).coverage80;
  CHECK(coverage > 0.75);
  CHECK(coverage < 0.87);
}
