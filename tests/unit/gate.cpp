#include "bench/gate/gate.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "bench/gate/selftest.hpp"
#include "configs/base/error.hpp"
#include "tests/fixtures/temp_directory.hpp"

using Catch::Matchers::Contains;
using wt::GateOptions;
using wt::Verdict;
using Values = std::vector<double>;

namespace {

// Nine samples around a millisecond, 0.4 % apart at most.
const Values kQuiet = {1.000e-3, 1.001e-3, 0.999e-3, 1.002e-3, 0.998e-3, 1.0005e-3, 0.9995e-3, 1.0015e-3, 0.9985e-3};
const Values kNoisy = {1.00e-3, 1.20e-3, 0.85e-3, 1.10e-3, 0.90e-3, 1.30e-3, 0.80e-3, 1.05e-3, 0.95e-3};

Values times(Values values, double factor) {
  for (double& v : values) v *= factor;
  return values;
}

wt::Measurement measurement(const std::string& kernel, Values samples, const std::string& unit = "s") {
  wt::Measurement m;
  m.kernel = kernel;
  m.unit = unit;
  m.samples = std::move(samples);
  m.evidence = {wt::Evidence::measured, "test"};
  return m;
}

wt::Profile profile(std::vector<wt::Measurement> measurements) {
  return {{{"device", "H100"}, {"cuda", "13.0"}, {"commit", "a"}}, std::move(measurements)};
}

wt::GateResult of(const Values& base, const Values& current, const GateOptions& options = {}) {
  return wt::compare(profile({measurement("k", base)}), profile({measurement("k", current)}), options);
}

Verdict verdict(const Values& base, const Values& current, const GateOptions& options = {}) {
  return of(base, current, options).rows.at(0).verdict;
}

}  // namespace

TEST_CASE("a 10 % slowdown is found, a 10 % gain is no failure") {
  const wt::GateResult slower = of(kQuiet, times(kQuiet, 1.1));
  CHECK(slower.rows[0].verdict == Verdict::slower);
  CHECK(*slower.rows[0].ratio == Approx(1.1));
  CHECK(*slower.rows[0].delta == Approx(1e-4));
  CHECK(*slower.rows[0].p == Approx(2.0 / 48620));
  CHECK(*slower.rows[0].ratio_low < 1.1);
  CHECK(slower.exit_status() == 1);
  const wt::GateResult faster = of(times(kQuiet, 1.1), kQuiet);
  CHECK(faster.rows[0].verdict == Verdict::faster);
  CHECK(faster.exit_status() == 0);
}

TEST_CASE("the same code is the same, and noise is never slower") {
  CHECK(verdict(kQuiet, times(kQuiet, 1.001)) == Verdict::same);
  Values reversed(kNoisy.rbegin(), kNoisy.rend());
  CHECK(verdict(kNoisy, reversed) == Verdict::inconclusive);
  CHECK(verdict(kNoisy, times(kNoisy, 1.1)) == Verdict::inconclusive);
}

TEST_CASE("a certain slowdown within the floors is no finding, but not the same") {
  CHECK(verdict(kQuiet, times(kQuiet, 1.02)) == Verdict::below_floor);  // p = 4e-5, but 2 %
  CHECK(verdict(times(kQuiet, 1.02), kQuiet) == Verdict::same);
  const wt::GateResult little = of(kQuiet, times(kQuiet, 1.02));
  CHECK(little.exit_status() == 0);
  CHECK(little.sentence() == "No regression in 1 benchmark compared, 1 slower, below the floor.");
  GateOptions options;
  options.relative_floor = 0.01;
  CHECK(verdict(kQuiet, times(kQuiet, 1.02), options) == Verdict::slower);
}

TEST_CASE("short benchmarks have the relative floor alone, unless an absolute one is given") {
  const Values short_ones = times(kQuiet, 1e-3);  // 1 us
  CHECK(verdict(short_ones, times(short_ones, 2.6)) == Verdict::slower);
  GateOptions options;
  options.absolute_floor_s = 5e-6;
  CHECK(verdict(short_ones, times(short_ones, 2.6), options) == Verdict::below_floor);
  CHECK(verdict(short_ones, times(short_ones, 1.001), options) == Verdict::same);
}

TEST_CASE("the absolute floor is converted to the unit of the samples") {
  const auto in_us = [](double factor) {
    return profile({measurement("k", times(kQuiet, 1e6 * 0.02 * factor), "us")});
  };
  GateOptions options;
  options.absolute_floor_s = 5e-6;
  CHECK(wt::compare(in_us(1), in_us(1.1), options).rows[0].verdict == Verdict::below_floor);  // 2 us
  CHECK(wt::compare(in_us(1), in_us(1.5), options).rows[0].verdict == Verdict::slower);       // 10 us
}

TEST_CASE("too few samples are inconclusive, however large the change") {
  const Values three = {1e-3, 1e-3, 1e-3};
  const wt::GateResult result = of(three, times(three, 2));
  CHECK(result.rows[0].verdict == Verdict::inconclusive);
  CHECK_FALSE(result.rows[0].p);
  CHECK(result.exit_status() == 0);
  GateOptions strict;
  strict.strict = true;
  CHECK(of(three, times(three, 2), strict).exit_status() == 3);
  CHECK(of({1e-3}, {1e-3}).sentence() ==
        "Nothing could be decided in 1 benchmark compared, 1 inconclusive; 1 sample a side, at least 4 are needed.");
}

TEST_CASE("with many benchmarks five a side cannot pass BH, seven fully separated can") {
  const auto sides = [](std::size_t n, double factor) {
    std::vector<wt::Measurement> all;
    const Values some(kQuiet.begin(), kQuiet.begin() + static_cast<std::ptrdiff_t>(n));
    for (int i = 0; i < 100; ++i) all.push_back(measurement(fmt::format("k{}", i), times(some, i == 0 ? factor : 1)));
    return profile(all);
  };
  const wt::GateResult five = wt::compare(sides(5, 1), sides(5, 1.1));
  CHECK(five.count(Verdict::slower) == 0);
  CHECK(five.rows[0].verdict == Verdict::inconclusive);
  CHECK(five.rows[0].name == "k0/forward");
  const wt::GateResult seven = wt::compare(sides(7, 1), sides(7, 1.1));
  CHECK(seven.count(Verdict::slower) == 1);
  CHECK(*seven.rows[0].p_adjusted == Approx(100 * 2.0 / 3432));
}

TEST_CASE("for rates a smaller number is the regression") {
  wt::Measurement base = measurement("tokens", times(kQuiet, 1e6), "tokens/s");
  base.smaller_is_better = false;
  wt::Measurement current = base;
  current.samples = times(base.samples, 0.9);
  CHECK(wt::compare(profile({base}), profile({current})).rows[0].verdict == Verdict::slower);
  CHECK(wt::compare(profile({current}), profile({base})).rows[0].verdict == Verdict::faster);
}

TEST_CASE("another machine or library is incomparable, whatever the times") {
  wt::Profile base = profile({measurement("k", kQuiet)}), current = profile({measurement("k", times(kQuiet, 2))});
  current.fingerprint["device"] = std::string("H200");
  const wt::GateResult result = wt::compare(base, current);
  CHECK(result.rows[0].verdict == Verdict::incomparable);
  CHECK(result.exit_status() == 3);
  CHECK_THAT(result.sentence(), Contains("device: 'H100' and 'H200'"));
  GateOptions options;
  options.ignored_facts = {"device"};
  CHECK(wt::compare(base, current, options).exit_status() == 1);
}

TEST_CASE("a fact that only one side has is a difference, the commit is none") {
  wt::Profile base = profile({measurement("k", kQuiet)}), current = base;
  current.fingerprint["commit"] = std::string("b");
  CHECK(wt::compare(base, current).exit_status() == 0);
  current.fingerprint["driver"] = std::string("570");
  CHECK_THAT(wt::compare(base, current).sentence(), Contains("driver: none and '570'"));
}

TEST_CASE("other units and numbers nobody measured are incomparable") {
  const wt::Profile base = profile({measurement("k", kQuiet)});
  CHECK(wt::compare(base, profile({measurement("k", kQuiet, "ms")})).rows[0].verdict == Verdict::incomparable);
  wt::Measurement assumed = measurement("k", kQuiet);
  assumed.evidence.kind = wt::Evidence::assumed;
  const wt::GateResult result = wt::compare(base, profile({assumed}));
  CHECK(result.rows[0].verdict == Verdict::incomparable);
  CHECK(result.exit_status() == 3);
}

TEST_CASE("numbers that no side measured are counted, not judged: a profile against itself passes") {
  wt::Measurement derived = measurement("cross_entropy", {1e-3});
  derived.evidence.kind = wt::Evidence::derived;
  const wt::Profile both = profile({measurement("k", kQuiet), derived}), one = profile({measurement("k", kQuiet)});
  for (const auto& [base, current] : {std::pair{both, both}, {both, one}, {one, both}}) {
    const wt::GateResult result = wt::compare(base, current);
    CHECK(result.rows.size() == 1);
    CHECK(result.unmeasured == 1);
    CHECK(result.exit_status() == 0);
    CHECK_THAT(result.sentence(), Contains("1 benchmark compared, 1 not judged because no side measured them"));
  }
  for (const wt::Profile& other : {profile({derived}), profile({derived, measurement("k", kQuiet)})}) {
    const wt::GateResult nothing = wt::compare(profile({derived}), other);
    CHECK(nothing.exit_status() == 3);
    CHECK_THAT(nothing.sentence(), Contains("no side measured 1 benchmark, and the profiles have no other in common"));
  }
  CHECK_THAT(wt::compare(profile({}), profile({})).sentence(), Contains("the profiles have no benchmark in common"));
}

TEST_CASE("times of a throttled device are incomparable, whatever they are") {
  const wt::Profile base = profile({measurement("k", kQuiet)});
  wt::Measurement slowed = measurement("k", times(kQuiet, 2));
  slowed.throttled = {"hw_thermal"};
  const wt::GateResult result = wt::compare(base, profile({slowed}));
  CHECK(result.rows[0].verdict == Verdict::incomparable);
  CHECK_THAT(result.rows[0].reason, Contains("throttled device (hw_thermal)"));
  CHECK(result.exit_status() == 3);
  CHECK(wt::compare(profile({slowed}), base).rows[0].verdict == Verdict::incomparable);
}

TEST_CASE("a lost benchmark is a finding unless allowed, a new one is not") {
  const wt::Profile both = profile({measurement("a", kQuiet), measurement("b", kQuiet)});
  const wt::Profile one = profile({measurement("a", kQuiet)});
  const wt::GateResult lost = wt::compare(both, one);
  CHECK(lost.rows[0].verdict == Verdict::missing);
  CHECK(lost.exit_status() == 1);
  GateOptions options;
  options.allow_missing = true;
  CHECK(wt::compare(both, one, options).exit_status() == 0);
  CHECK(wt::compare(one, both).count(Verdict::fresh) == 1);
  CHECK(wt::compare(one, both).exit_status() == 0);
}

TEST_CASE("a benchmark that failed is a finding with its reason, whatever the base has of it") {
  const wt::Profile base = profile({measurement("a", kQuiet), measurement("b", kQuiet)});
  wt::Profile broken = profile({measurement("a", kQuiet)});
  broken.failures = {{measurement("b", kQuiet).name(), "wrong result"}};
  GateOptions options;
  options.allow_missing = true;
  const wt::GateResult result = wt::compare(base, broken, options);
  REQUIRE(result.rows.size() == 2);
  CHECK(result.rows[0].verdict == Verdict::failed);
  CHECK(result.rows[0].reason == "wrong result");
  CHECK(result.rows[0].base_n == kQuiet.size());
  CHECK(result.exit_status() == 1);
  CHECK(result.sentence() == "No regression in 1 benchmark compared, 1 failed.");
  CHECK(wt::compare(profile({measurement("a", kQuiet)}), broken).count(Verdict::failed) == 1);
  wt::Profile some = base;  // one process of two failed
  some.failures = broken.failures;
  CHECK(wt::compare(base, some).count(Verdict::failed) == 1);
  CHECK(wt::compare(base, some).rows.size() == 2);
  CHECK(wt::compare(some, broken).exit_status() == 1);  // it ran there, too
  CHECK(wt::compare(some, some).exit_status() == 0);
  const wt::GateResult again = wt::compare(broken, broken);
  CHECK(again.count(Verdict::failed) == 1);
  CHECK(again.exit_status() == 0);
  broken.measurements.clear();
  CHECK(wt::compare(base, broken).exit_status() == 1);
  CHECK(wt::compare(broken, base).count(Verdict::fresh) == 2);
  CHECK(wt::compare(broken, base).exit_status() == 3);
}

TEST_CASE("a comparison of nothing is no pass") {
  CHECK(wt::compare(profile({}), profile({})).exit_status() == 3);
  CHECK(wt::compare(profile({}), profile({measurement("k", kQuiet)})).exit_status() == 3);
}

TEST_CASE("a base of zeros has no ratio") {
  const Values zeros(9, 0.0);
  CHECK(verdict(zeros, zeros) == Verdict::same);
  CHECK(verdict(zeros, kQuiet) == Verdict::inconclusive);
  CHECK(verdict(kQuiet, zeros) == Verdict::faster);
}

TEST_CASE("options out of range are refused by name") {
  GateOptions options;
  options.alpha = 0;
  CHECK_THROWS_WITH(of(kQuiet, kQuiet, options), Contains("gate: alpha: found 0"));
  options = {};
  options.relative_floor = -0.1;
  CHECK_THROWS_WITH(of(kQuiet, kQuiet, options), Contains("relative_floor"));
  options = {};
  options.separation_samples = 2;
  CHECK_THROWS_WITH(of(kQuiet, kQuiet, options), Contains("separation_samples: found 2"));
  options = {};
  options.absolute_floor_s = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(of(kQuiet, kQuiet, options), Contains("absolute_floor_s"));
}

TEST_CASE("on recorded H100 timings: no false alarms interleaved, steps found") {
  wt::SelftestOptions options;
  options.trials = 20;
  options.block_trials.clear();  // unit/gate_sequential.cpp
  const wt::SelftestResult r = wt::selftest(wt::read_recorded_runs(wt::default_recorded_runs()), options);
  CHECK(r.benchmarks == 564);
  CHECK(r.runs == 29);
  CHECK(r.interleaved.judged == 20 * 564);
  CHECK(r.interleaved.slower <= 1e-4);
  CHECK(r.interleaved.naive > 0.05);  // the noise is there: a 3 % rule without a test cries wolf
  CHECK(r.consecutive.slower > r.interleaved.slower);
  REQUIRE(r.recall.size() == 3);
  CHECK(r.recall[0].all < 0.05);  // 2 % is below the floor
  CHECK(r.recall[1].quiet > 0.75);
  CHECK(r.recall[2].quiet >= r.recall[1].quiet);
  CHECK(r.recall[1].failed_runs == 1);
}

TEST_CASE("the gate's false-alarm rates of both workflows are those of its selftest") {
  wt::SelftestOptions options;
  options.block_trials.clear();
  const wt::SelftestResult r = wt::selftest(wt::read_recorded_runs(wt::default_recorded_runs()), options);
  CHECK(r.interleaved.failed_runs == Approx(wt::kFalseAlarmsInTurns).margin(0.0005));
  CHECK(r.consecutive.failed_runs == Approx(wt::kFalseAlarmsBaseThenNew).margin(0.0005));
}

TEST_CASE("the bound of a rate is what shows so few events or fewer in 5 % of the cases") {
  CHECK(wt::rate_bound(0, 300) == Approx(1 - std::pow(0.05, 1 / 300.0)));  // 1 %
  const double one = wt::rate_bound(1 / 300.0, 300);
  CHECK(std::pow(1 - one, 300) + 300 * one * std::pow(1 - one, 299) == Approx(0.05));
  CHECK(wt::rate_bound(2 / 12.0, 12) == Approx(0.4381).margin(5e-5));  // R: binom.test(2, 12, alternative = "less")
  CHECK(wt::rate_bound(1, 7) == 1);
}

TEST_CASE("whether the sides were measured in turns is told by their dates") {
  const auto order = [](const std::string& base, const std::string& current) {
    wt::Profile a, b;
    if (!base.empty()) a.fingerprint["date"] = base;
    if (!current.empty()) b.fingerprint["date"] = current;
    return wt::compare(a, b);
  };
  const std::string one = "2026-01-01T00:01:00Z", two = "2026-01-01T00:02:00Z", three = "2026-01-01T00:03:00Z",
                    four = "2026-01-01T00:04:00Z";
  CHECK(order(one + " + " + three, two + " + " + four).order == wt::Order::in_turns);
  CHECK(order(four + " + " + two, one + " + " + three).order == wt::Order::in_turns);
  for (const auto& r : {order(one, two), order(three, two), order(one + " + " + two, three + " + " + four)}) {
    CHECK(r.order == wt::Order::base_then_new);
    CHECK_THAT(r.order_sentence(), Contains("16.7 %") && Contains("in turns 0.3 %") && Contains("chosen on"));
  }
  CHECK(order("", two).order == wt::Order::unknown);
  CHECK_THAT(order("", two).order_sentence(), Contains("not known"));
}

TEST_CASE("recorded timings that are broken are named by line and column") {
  const wt::test::TempDirectory folder;
  const std::filesystem::path file = folder / "recorded.csv";
  const auto error = [&](const std::string& text) {
    std::ofstream(file) << text;
    try {
      wt::read_recorded_runs(file);
    } catch (const wt::Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(error("benchmark,a,b\nk,1,\n"), Contains(":2: column 3 (b): found ''"));
  CHECK_THAT(error("benchmark,a,b\nk,1\n"), Contains(":2: found 2 columns, allowed 3"));
  CHECK_THAT(error("benchmark,a,b\nk,1,-2\n"), Contains("found '-2'"));
  CHECK_THAT(error("benchmark,a,b\n"), Contains("found no benchmark"));
}
