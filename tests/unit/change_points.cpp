#include "bench/gate/change_points.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "configs/base/json_reader.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;
using Series = std::vector<double>;
using Indices = std::vector<std::size_t>;

namespace {

const nlohmann::json& golden_points() {
  static const nlohmann::json document = wt::read_json("tests/data/change_points/golden.json");
  return document;
}

Indices indices(const Series& series, const wt::DivisiveOptions& options = {}) {
  Indices found;
  for (const wt::ChangePoint& each : wt::change_points(series, options)) found.push_back(each.index);
  return found;
}

/// Levels of `length` values each, with noise of this standard deviation from a fixed seed.
Series levels(const Series& means, std::size_t length, double deviation) {
  std::mt19937_64 random(7);
  Series series;
  for (double mean : means)
    for (std::size_t i = 0; i < length; ++i) {
      double sum = -6;  // Irwin-Hall: normal enough, and the same with every standard library
      for (int k = 0; k < 12; ++k) sum += static_cast<double>(random() >> 11) * 0x1p-53;
      series.push_back(mean + deviation * sum);
    }
  return series;
}

}  // namespace

TEST_CASE("the points that Apache Otava's own tests expect, at each of their ten settings") {
  const nlohmann::json& data = golden_points()["tigerbeetle"];
  CHECK(data["expected"].size() == 10);
  for (const auto& setting : data["expected"]) {
    INFO(setting.dump());
    CHECK(indices(data["series"], {setting["window_len"], setting["max_pvalue"], setting["min_magnitude"]}) ==
          setting["change_points"].get<Indices>());
  }
}

TEST_CASE("as many points as MongoDB's tests expect of E-divisive with permutations") {
  const nlohmann::json& data = golden_points();
  for (const char* name : {"short", "small", "medium"}) {
    const nlohmann::json& profile = data["mongodb_profiles"][name];
    CHECK(indices(profile["series"]).size() == profile["expected_count_p01_100perm_seed1234"]);
  }
  const nlohmann::json& long_series = data["mongodb_series"]["long_series"];
  CHECK(indices(long_series["values"]).size() == long_series["expected_count_p01_seed1234"]);
}

TEST_CASE("a step is found where it is, whatever the unit and the direction of time") {
  const Series series = levels({10, 11, 9}, 30, 0.1);
  CHECK(indices(series) == Indices{30, 60});
  Series scaled = series;
  for (double& value : scaled) value = 1000 * value;
  CHECK(indices(scaled) == Indices{30, 60});
  CHECK(indices(Series(series.rbegin(), series.rend())) == Indices{30, 60});
}

TEST_CASE("nothing is found where nothing changes, or too little to tell") {
  CHECK(indices({}).empty());
  CHECK(indices({1}).empty());
  CHECK(indices({1, 2}).empty());
  CHECK(indices(Series(200, 3.0)).empty());
  CHECK(indices(levels({10}, 100, 1)).empty());
}

TEST_CASE("without any noise the first value at a new level is enough") {
  Series series(20, 1.0);
  series.push_back(2);
  CHECK(indices(series) == Indices{20});
}

TEST_CASE("a smaller p-value and a larger magnitude only take points away") {
  const Series series = golden_points()["tigerbeetle"]["series"];
  std::size_t before = series.size();
  for (double p : {0.2, 0.1, 0.01, 0.001, 0.0001}) {
    const std::size_t found = indices(series, {30, p, 0}).size();
    CHECK(found <= before);
    before = found;
  }
  CHECK(indices(series, {50, 1e-3, 0.05}).size() < indices(series).size());
}

TEST_CASE("Student's t against closed forms") {
  // One degree of freedom is Cauchy's distribution. x = {0, 2}, y = {t}: the variance of x, over its 2 values, is 1.
  for (double t : {2.0, 3.0, 11.0}) {
    const double statistic = (t - 1) / std::sqrt(1.5);
    CHECK(wt::student_t_p({0, 2}, {t}) == Approx(1 - 2 / M_PI * std::atan(statistic)));
  }
  // Two degrees: P(|T| > t) = 1 - t / sqrt(2 + t^2).
  const double t = 3 / std::sqrt(1.0);  // means 3 apart, pooled variance 1, sqrt(1/2 + 1/2) = 1
  CHECK(wt::student_t_p({0, 2}, {3, 5}) == Approx(1 - t / std::sqrt(2 + t * t)));
  CHECK(wt::student_t_p({1}, {2}) == 1);
  CHECK(wt::student_t_p({}, {2, 3, 4}) == 1);
  CHECK(wt::student_t_p({2, 2}, {2, 2}) == 1);
  CHECK(wt::student_t_p({2, 2}, {3, 3}) == 0);
}

TEST_CASE("options out of range and values that are no numbers are refused by name") {
  const Series series(10, 1.0);
  const auto refusal = [&](const wt::DivisiveOptions& options) {
    return wt::test::usage_error([&] { wt::change_points(series, options); });
  };
  CHECK_THAT(refusal({1, 1e-3, 0}), Contains("window") && Contains("2 or more"));
  CHECK_THAT(refusal({50, 0, 0}), Contains("max_p"));
  CHECK_THAT(refusal({50, 1.5, 0}), Contains("max_p"));
  CHECK_THAT(refusal({50, 1e-3, -1}), Contains("min_magnitude"));
  CHECK_THAT(refusal({50, 1e-3, std::nan("")}), Contains("min_magnitude"));
  const Series broken = {1, 2, std::numeric_limits<double>::infinity()};
  CHECK_THAT(wt::test::usage_error([&] { wt::change_points(broken); }), Contains("value 2") && Contains("finite"));
}
