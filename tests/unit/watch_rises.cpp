// Rises above a level from before: on series whose answers follow from how they are made.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "planner/watch/rise_detector.hpp"
#include "planner/watch/run_watch.hpp"
#include "tests/fixtures/watched_run.hpp"

using namespace wt;
using namespace wt::test;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SignalRule shipped(WatchedMetric metric) {
  const WatchRules rules = read_watch_rules("default");
  return *std::ranges::find(rules.signals, metric, &SignalRule::metric);
}

/// States after each of `count` values.
std::vector<RiseState> states(int count, const std::function<double(int)>& value,
                              const SignalRule& rule = shipped(WatchedMetric::loss)) {
  RiseDetector detector(rule);
  std::vector<RiseState> out;
  for (int i = 0; i < count; ++i) out.push_back(detector.add(value(i)));
  return out;
}

/// The first value after which a rise stands; `count` where none does.
std::size_t raised_at(const std::vector<RiseState>& all) {
  return static_cast<std::size_t>(std::ranges::find(all, true, &RiseState::stands) - all.begin());
}

class Noise {
 public:
  explicit Noise(unsigned seed, double sigma) : random_(seed), sigma_(sigma) {}
  double operator()() { return sigma_ * normal_(random_); }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  double sigma_;
};

}  // namespace

TEST_CASE("noise around a level raises nothing, of whatever size: less than once in 100,000 values") {
  SignalRule rule = shipped(WatchedMetric::loss);
  rule.factor = 1e-12;  // the deviations alone
  for (unsigned seed = 0; seed < 100; ++seed) {
    Noise noise(seed, std::pow(10, static_cast<int>(seed % 5) - 3));
    INFO(seed);
    CHECK(raised_at(states(
              1000, [&](int) { return 2.5 + noise(); }, rule)) == 1000);
  }
}

TEST_CASE("noise with long tails raises less than one false alarm in 10,000 values") {
  SignalRule rule = shipped(WatchedMetric::loss);
  rule.factor = 1e-12;
  int raised = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::student_t_distribution<double> tails(3);
    raised += raised_at(states(
                  1000, [&](int) { return 2.5 + 0.1 * tails(random); }, rule)) < 1000;
  }
  CHECK(raised < 10);
}

TEST_CASE("a jump of half a nat is raised by its second value, dated to its first, and stands as long as it stays") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO(seed);
    Noise noise(seed, 0.02);
    const int at = 100 + static_cast<int>(seed) * 7;
    const auto all = states(at + 2000, [&](int i) { return 2.5 + noise() + (i >= at ? 0.5 : 0); });
    CHECK(raised_at(all) == static_cast<std::size_t>(at) + 1);
    CHECK(all.back().stands);
    CHECK(all.back().first == static_cast<std::size_t>(at));
    CHECK(all.back().level == Approx(2.5).margin(0.02));
    CHECK(all.back().limit == Approx(2.8).margin(0.1));
  }
}

TEST_CASE("a spike is raised and ends; a single value is none; what is back half the way has not ended") {
  const auto with = [](std::initializer_list<std::pair<int, double>> changes) {
    return states(200, [&](int i) {
      for (const auto& [at, value] : changes)
        if (i == at) return value;
      return 2.0;
    });
  };
  CHECK(raised_at(with({{100, 9.0}})) == 200);
  const auto spike = with({{100, 9.0}, {101, 9.0}, {102, 9.0}});
  CHECK(raised_at(spike) == 101);
  CHECK(spike[103].stands);  // one value that is right again
  CHECK_FALSE(spike[104].stands);
  CHECK(spike.back().level == 2.0);
  const auto half = states(200, [](int i) { return i < 100 ? 2.0 : i < 103 ? 9.0 : 2.2; });
  CHECK(half.back().stands);  // the limit is 2.3, the middle 2.15
}

TEST_CASE("NaN and infinity are wrong from the first value on, and end with numbers") {
  for (const double bad : {kNaN, std::numeric_limits<double>::infinity()}) {
    const auto early = states(10, [&](int i) { return i == 3 || i == 4 ? bad : 8.0; });
    CHECK(raised_at(early) == 4);
    CHECK(early[4].first == 3u);
    CHECK(std::isnan(early[4].level));
    CHECK_FALSE(early[6].stands);
    CHECK(raised_at(states(100, [&](int i) { return i >= 60 ? bad : 2.0; })) == 61);
  }
}

TEST_CASE("a slow drift up is raised once it is above the lowest level of the memory by as much as the rule says") {
  // 0.001 a value: 0.3 above a level that lies at most 1000 values back. Never raised where it takes longer.
  const auto drift = [](double slope) {
    return raised_at(states(5000, [=](int i) { return 2.0 + slope * std::max(0, i - 200); }));
  };
  CHECK(drift(0.001) > 500);
  CHECK(drift(0.001) < 540);  // 300 values, and what the deviation of the drifting values adds
  CHECK(drift(0.0002) == 5000);
}

TEST_CASE("a loss that falls fast takes its level with it, and a jump from where it is now is seen") {
  Noise noise(1, 0.02);
  const auto falling = [&](int i) { return 2.5 + 8.5 * std::exp(-i / 60.0) + noise(); };
  CHECK(raised_at(states(2000, falling)) == 2000);
  const auto jump = states(700, [&](int i) { return falling(i) + (i >= 600 ? 0.5 : 0); });
  CHECK(raised_at(jump) == 601);
  const auto blown = states(100, [&](int i) { return i < 60 ? falling(i) : 11.0; });  // early: only what is large
  CHECK(raised_at(blown) == 61);
}

TEST_CASE("a gradient norm is compared by its logarithm: five-fold for as long as the rule says") {
  const auto signals = [](double value, int steps) {
    const TrainingObservation run = made_up_run(100 + steps, [&](TrainingStep& s) {
      s.grad_norm = s.step > 100 ? value : 1 + 0.01 * static_cast<double>(s.step % 7);
    });
    const WatchRules rules = read_watch_rules("default");
    return RunSignals(run, rules, {}).now();
  };
  REQUIRE(signals(6, 8).size() == 1);
  CHECK(signals(6, 8)[0].rule == "gradient jump");
  CHECK(signals(6, 8)[0].reference == Approx(1.03).margin(0.02));
  CHECK(signals(6, 8)[0].limit == Approx(1.03 * std::exp(1.6)).epsilon(0.02));
  CHECK(signals(6, 8)[0].value == 6);
  CHECK(signals(6, 7).empty());
  CHECK(signals(4, 8).empty());
  CHECK(signals(0, 8).empty());
}

TEST_CASE("a jump of the loss stands in a run for as long as it stays") {
  const TrainingObservation run =
      made_up_run(3000, [](TrainingStep& s) { s.loss = (s.step > 1000 ? 3.1 : 2.5) + 0.01 * (s.step % 5); });
  const WatchRules rules = read_watch_rules("default");
  const auto found = RunSignals(run, rules, {}).now();
  REQUIRE(found.size() == 1);
  CHECK((found[0].first_step == 1001 && found[0].last_step == 3000));
  CHECK(found[0].value == Approx(3.12).margin(0.03));
  CHECK(found[0].reference == Approx(2.52));
  CHECK(says(found[0]) == fmt::format("loss is {:.4g} since step 1001, before it was 2.52", found[0].value));
}

TEST_CASE("memory that grows is a signal; on fewer nodes it may be as much larger as steps take longer") {
  const TrainingObservation run =
      made_up_run(60, [](TrainingStep& s) { s.peak_tensor_bytes = s.step > 40 ? 60e9 : 50e9; });
  const WatchRules rules = read_watch_rules("default");
  const auto found = RunSignals(run, rules, {}).now();
  REQUIRE(found.size() == 1);
  CHECK((found[0].metric == WatchedMetric::memory && found[0].first_step == 41));
  const Diagnosis d = diagnosis_of(run, found, rules, {});
  CHECK(d.ailment == Ailment::undecided);
  CHECK(d.reason == "memory is 55.9 GiB since step 41, before it was 46.6 GiB");
  WatchBaseline shrunk;
  shrunk.step_factor = 1.1;
  CHECK(RunSignals(run, rules, shrunk).now().empty());
}
