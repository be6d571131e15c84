// Runs of months with failures: the jumping simulator equals the stepping one, time is conserved, and long runs agree
// with the closed forms O4 and O6.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "configs/spec/error.hpp"
#include "planner/cadence_formulas.hpp"
#include "sim/run/simulate_run.hpp"

using namespace wt;

namespace {

RunScenario busy() {  // everything happens, in seconds
  RunScenario s;
  s.steps = 20000, s.step_s = 7.3, s.interval_steps = 40;
  s.blocking_s = 11.1, s.persist_s = 90.7, s.startup_s = 21;
  s.failures = {9000, 1.0};
  s.detect_s = 60, s.reschedule_s = 200, s.restart_s = 45.5, s.reload_s = 130;
  s.planned_mean_s = 40000, s.planned_stop_s = 1800;
  s.spares = 2, s.repair_s = 12000;
  return s;
}

void check_equal(const RunOutcome& a, const RunOutcome& b) {
  CHECK(a.wall_ns == b.wall_ns);
  CHECK(a.buckets_ns == b.buckets_ns);
  CHECK(a.failures == b.failures);
  CHECK(a.planned_stops == b.planned_stops);
  CHECK(a.finished == b.finished);
}

std::int64_t total(const BucketTimes& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("one uptime: jumping equals stepping at every time of failure and stop") {
  // Small whole numbers, so that failures and stops fall on every edge.
  std::mt19937_64 engine(3);
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(below));
  };
  for (int i = 0; i < 200000; ++i) {
    detail::RunClock c{1 + draw(12), 1 + draw(5), 1 + draw(4), draw(4), draw(14), draw(3), draw(3), draw(2)};
    const std::int64_t start = draw(c.steps), failure = i % 3 == 0 ? detail::kNever : draw(90);
    const std::int64_t stop = i % 2 == 0 ? detail::kNever : draw(60);
    const bool first = draw(2) == 0;
    const detail::Uptime jump = detail::jump_uptime(c, start, first, failure, stop);
    const detail::Uptime step = detail::step_uptime(c, start, first, failure, stop);
    INFO("steps " << c.steps << " interval " << c.interval << " step " << c.step << " C " << c.blocking << " P "
                  << c.persist << " start " << start << " failure " << failure << " stop " << stop);
    REQUIRE(jump.length == step.length);
    REQUIRE(jump.secured == step.secured);
    REQUIRE(jump.how == step.how);
    REQUIRE(jump.spent == step.spent);
    REQUIRE(total(jump.spent) == jump.length);
  }
}

TEST_CASE("whole runs: jumping equals stepping, with every feature and every seed") {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    check_equal(simulate_run(busy(), seed), simulate_run_stepping(busy(), seed));
  RunScenario s = busy();
  s.failures.shape = 0.6;
  s.persist_s = 400;  // longer than the interval: saves wait
  for (std::uint64_t seed = 0; seed < 20; ++seed) check_equal(simulate_run(s, seed), simulate_run_stepping(s, seed));
}

TEST_CASE("buckets sum to the wall time, and the work done is the work asked for") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const RunOutcome run = simulate_run(busy(), seed);
    CHECK(run.finished);
    CHECK(total(run.buckets_ns) == run.wall_ns);
    CHECK(run.bucket_s(Bucket::productive) == Approx(20000 * 7.3).epsilon(1e-12));
    for (std::int64_t time : run.buckets_ns) CHECK(time >= 0);
    CHECK(run.bucket_s(Bucket::custom_events) == Approx(1800.0 * static_cast<double>(run.planned_stops)));
    CHECK(run.bucket_s(Bucket::infrastructure_recovery) >= 260.0 * static_cast<double>(run.failures) - 1e-6);
  }
}

TEST_CASE("without failures a run is steps, saves, start and the last persist") {
  RunScenario s = busy();
  s.failures.mean_s = 0, s.planned_mean_s = 0;
  const RunOutcome run = simulate_run(s, 1);
  CHECK(run.failures == 0);
  CHECK(run.wall_s() == Approx(20000 * 7.3 + 500 * 11.1 + 90.7 + 45.5 + 21).epsilon(1e-12));
  s.persist_s = 0, s.restart_s = 0, s.startup_s = 0;
  CHECK(simulate_run(s, 1).goodput() == Approx(40 * 7.3 / (40 * 7.3 + 11.1)));
}

TEST_CASE("the same seed repeats a run, another does not, and planned stops do not move failures") {
  check_equal(simulate_run(busy(), 5), simulate_run(busy(), 5));
  CHECK(simulate_run(busy(), 5).wall_ns != simulate_run(busy(), 6).wall_ns);
  RunScenario rare = busy();
  rare.failures.mean_s = 1e9;
  CHECK(simulate_run(rare, 5).failures == 0);
  CHECK(simulate_run(rare, 5).planned_stops > 0);
  CHECK(simulate_run(rare, 5).bucket_s(Bucket::wasted_progress) == 0);
}

TEST_CASE("mean runs get slower with every cost") {
  RunScenario base = busy();
  base.planned_mean_s = 0, base.spares = -1;
  const double mean = simulate_runs(base, 400, 1).mean_s;
  const auto slower = [&](auto change) {
    RunScenario s = base;
    change(s);
    CHECK(simulate_runs(s, 400, 1).mean_s > mean);
  };
  slower([](RunScenario& s) { s.blocking_s *= 2; });
  slower([](RunScenario& s) { s.persist_s *= 2; });
  slower([](RunScenario& s) { s.detect_s *= 2; });
  slower([](RunScenario& s) { s.reload_s *= 2; });
  slower([](RunScenario& s) { s.failures.mean_s /= 1.5; });
  slower([](RunScenario& s) { s.interval_steps *= 4; });
  slower([](RunScenario& s) { s.planned_mean_s = 40000; });
  slower([](RunScenario& s) { s.spares = 1, s.repair_s = 20000; });
}

TEST_CASE("O4: the mean finish is the expected time") {
  RunScenario s;  // minutes as in the golden vector: W 510, tau 30, C 1, D 2, R 5, M 120 -> 637.365
  s.steps = 510, s.step_s = 60, s.interval_steps = 30;
  s.blocking_s = 60, s.detect_s = 120, s.reload_s = 300, s.failures.mean_s = 7200;
  const RunDistribution d = simulate_runs(s, 20000, 11);
  // The formula charges R only after failures, as the model does. Standard error of the mean: 0.5 min.
  CHECK(d.mean_s / 60 == Approx(expected_time(510, 30, 1, 2, 5, 120)).margin(2.0));
  CHECK(d.finished == 20000);
}

TEST_CASE("O6: long-run goodput with background persist, exponential and Weibull") {
  for (double shape : {1.0, 0.7, 0.5})
    for (double persist : {0.0, 8.0}) {
      RunScenario s;
      s.steps = 4000000, s.step_s = 60, s.interval_steps = 30;
      s.blocking_s = 60, s.persist_s = 60 * persist, s.detect_s = 600, s.failures = {180 * 60, shape};
      const RunDistribution d = simulate_runs(s, 40, 12);  // about a million failures
      CHECK(d.failures * 40 > 9e5);
      const double productive = d.bucket_mean_s[static_cast<std::size_t>(Bucket::productive)];
      CHECK(productive / d.mean_s ==
            Approx(persisted_goodput(weibull_survival(180, shape), 180, 30, 1, persist, 10, 0)).margin(5e-4));
    }
}

TEST_CASE("O3's interval is at least as good as half and twice of it") {
  RunScenario s;
  s.steps = 100000, s.step_s = 10, s.blocking_s = 30, s.detect_s = 300, s.failures.mean_s = 16.5 * 3600;
  const auto best = static_cast<std::int64_t>(exact_interval(30, 16.5 * 3600) / 10);
  const auto goodput = [&](std::int64_t interval) {
    s.interval_steps = interval;
    return simulate_runs(s, 2000, 13).goodput;
  };
  CHECK(goodput(best) > goodput(best / 2));
  CHECK(goodput(best) > goodput(best * 2));
}

TEST_CASE("the distribution is ordered and sums up") {
  const RunDistribution d = simulate_runs(busy(), 500, 2);
  CHECK(d.wall_s.size() == 500);
  CHECK(d.p50_s < d.p90_s);
  CHECK(d.p90_s < d.p95_s);
  CHECK(d.p50_s == d.wall_s[249]);
  CHECK(d.goodput_p05 < d.goodput);
  CHECK(std::accumulate(d.bucket_mean_s.begin(), d.bucket_mean_s.end(), 0.0) == Approx(d.mean_s));
}

TEST_CASE("no spares means waiting for every repair, and a hopeless run gives up") {
  RunScenario s = busy();
  s.planned_mean_s = 0, s.spares = 0, s.repair_s = 5000;
  const RunOutcome run = simulate_run(s, 4);
  CHECK(run.bucket_s(Bucket::infrastructure_recovery) == Approx(5000.0 * static_cast<double>(run.failures)));
  s.interval_steps = 20000, s.failures.mean_s = 3600;
  const RunOutcome hopeless = simulate_run(s, 4);
  CHECK_FALSE(hopeless.finished);
  CHECK(total(hopeless.buckets_ns) == hopeless.wall_ns);
  CHECK(hopeless.bucket_s(Bucket::productive) == 0);
}

TEST_CASE("impossible scenarios are refused") {
  const auto refused = [](auto change, const std::string& why) {
    RunScenario s = busy();
    change(s);
    CHECK_THROWS_WITH(simulate_run(s, 1), Catch::Contains(why));
  };
  refused([](RunScenario& s) { s.steps = 0; }, "found 0 steps");
  refused([](RunScenario& s) { s.step_s = 0; }, "at least a nanosecond");
  refused([](RunScenario& s) { s.persist_s = -1; }, "found -1 s");
  refused([](RunScenario& s) { s.failures.shape = 0; }, "shape 0");
  refused([](RunScenario& s) { s.steps = 1'000'000'000'000; }, "70 years");
  CHECK_THROWS_WITH(simulate_runs(busy(), 0, 1), Catch::Contains("found 0"));
}
