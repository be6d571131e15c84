// Figures that judge predictions, against closed forms.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

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

namespace {

/// Groups of two members each, at `mean` - 0.1 and `mean` + 0.1: a variance of 0.02 within.
std::vector<LogError> pairs_around(const std::vector<double>& means) {
  std::vector<LogError> out;
  for (std::size_t i = 0; i < means.size(); ++i)
    for (const double away : {-0.1, 0.1}) out.push_back({std::to_string(i), means[i] + away});
  return out;
}

}  // namespace

TEST_CASE("errors spread within groups and between them, as analysis of variance says for groups of one size") {
  const ErrorSpreads spreads = spreads_of(pairs_around({-0.3, 0, 0.6}));
  CHECK(spreads.groups == 3);
  CHECK(spreads.within == Approx(0.02));
  CHECK(spreads.between == Approx((0.16 + 0.01 + 0.25) / 2 - 0.02 / 2));
  CHECK(spreads_of(pairs_around({-0.05, 0, 0.05})).between == 0);  // no more than members of one group differ
  CHECK(spreads_of({{"a", 0.1}, {"b", 0.3}}).within == 0);
  CHECK(spreads_of({{"a", 0.1}, {"b", 0.3}}).between == Approx(0.02));
}

TEST_CASE("the next group lies around the mean of groups by Student's t") {
  const double within = 0.02, between = 0.21 - 0.01;
  const double half = 1.885618 * std::sqrt(between + within + (between + within / 2) / 3);  // t of 2 degrees of freedom
  const auto [low, high] = log_interval(pairs_around({-0.3, 0, 0.6}));
  CHECK(low == Approx(0.1 - half));
  CHECK(high == Approx(0.1 + half));
  CHECK(log_interval(pairs_around({1, 1, 1})).first == 0);  // the prediction is always inside
  CHECK(log_interval({}) == std::make_pair(-std::log(2.0), std::log(2.0)));
}

TEST_CASE("few groups have the spreads of all errors") {
  const ErrorSpreads pooled = {.within = 0.01, .between = 0.04, .groups = 9};
  const auto [low, high] = log_interval(pairs_around({0}), pooled);
  CHECK(high == Approx(1.396815 * std::sqrt(0.01 + 0.04 + 0.04 + 0.01 / 2)));  // t of 8 degrees of freedom
  CHECK(low == Approx(-high));
  const double alone = log_interval(pairs_around({0})).second;
  CHECK(alone == Approx(1.885618 * std::sqrt(0.02 + 0.0196 + 0.0196 + 0.02 / 2)));
}

TEST_CASE("a row's own group has no part in its interval") {
  std::vector<Judged> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(judged(1, 1, "calm"));
  for (int i = 0; i < 20; ++i) rows.push_back(judged(i % 2 ? 2 : 0.5, 1, "wild"));
  add_intervals(rows, &Judged::forecast);
  const double spread = std::exp(1.885618 * 0.14 * std::sqrt(2.0));  // between groups alone, and that of their mean
  CHECK(rows.back().forecast.low == Approx(1 / spread));
  CHECK(rows.back().forecast.high == Approx(spread));
  CHECK(rows.front().forecast.high > 2);
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
