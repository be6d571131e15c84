// Runs of months with failures: the jumping simulator equals the stepping one, time is conserved, and long runs agree
// with the closed forms O4, O6 and O14.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"
#include "planner/cadence/cadence_formulas.hpp"
#include "sim/months/simulate_run.hpp"
#include "tests/fixtures/cadence_references.hpp"
#include "tests/fixtures/run_scenarios.hpp"
#include "tests/fixtures/stepped_runs.hpp"

using namespace wt;
using namespace wt::test;

namespace {

RunScenario smooth() {  // nothing but steps: what is added is all there is to see
  RunScenario s;
  s.steps = 1000000, s.step_s = 10, s.interval_steps = 100;
  return s;
}

std::int64_t total(const BucketTimes& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("one uptime: jumping equals stepping at every time of failure, stop and change of health") {
  // Small whole numbers, so that failures and stops fall on every edge.
  std::mt19937_64 engine(3);
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(below));
  };
  for (int i = 0; i < 200000; ++i) {
    detail::RunClock c{1 + draw(12), 1 + draw(5), 1 + draw(4), draw(4), draw(14), draw(3), draw(3), draw(2)};
    if (draw(2) == 0) {
      c.local_interval = 1 + draw(3), c.interval = c.local_interval * (1 + draw(4)), c.steps += draw(20);
      c.local_blocking = draw(3), c.local_reload = draw(3);
    }
    c.verify = draw(3);
    const std::int64_t resumed = draw(c.steps), persisted = draw(3) > 0 ? resumed : draw(resumed + 1);
    const detail::Saved from{{resumed, resumed * 2}, {persisted, persisted * 2}};
    const detail::Events events{i % 3 == 0 ? detail::kNever : draw(120), i % 2 == 0 ? detail::kNever : draw(60),
                                draw(2) == 0 ? detail::kNever : draw(60), c.local_interval == 0 || draw(2) == 0};
    const bool first = draw(2) == 0;
    std::vector<std::int64_t> changes(static_cast<std::size_t>(draw(7)));
    for (std::int64_t& time : changes) time = draw(90);
    std::sort(changes.begin(), changes.end());
    const std::uint64_t bits = engine(), rare = engine() & engine() & engine();  // one of each per change
    const auto healths = [&] {  // each asked in order; a change may have a pause before the first step after it
      return [&, paused = std::ptrdiff_t{0}](std::int64_t time) mutable {
        const auto next = std::upper_bound(changes.begin(), changes.end(), time) - changes.begin();
        detail::Health h{c.step + static_cast<std::int64_t>(bits >> (2 * next) & 3)};
        if (next < static_cast<std::ptrdiff_t>(changes.size())) h.until = changes[static_cast<std::size_t>(next)];
        h.too_few = (rare >> next & 1) == 1;
        if (next > paused && !h.too_few) h.pause = static_cast<std::int64_t>(bits >> (20 + 3 * next) & 7);
        paused = next;
        return h;
      };
    };
    const detail::Uptime jump = detail::jump_uptime(c, from, first, events, healths());
    const detail::Uptime step = counted_steps().uptime(c, from, first, events, healths());
    INFO("case " << i << " steps " << c.steps << " interval " << c.interval << " local " << c.local_interval << " step "
                 << c.step << " C " << c.blocking << " P " << c.persist << " V " << c.verify << " from " << resumed
                 << " or " << persisted << " failure " << events.failure << " stop " << events.stop << " silent "
                 << events.silent);
    REQUIRE(jump.length == step.length);
    REQUIRE(jump.saved.loaded.steps == step.saved.loaded.steps);
    REQUIRE(jump.saved.loaded.longer == step.saved.loaded.longer);
    REQUIRE(jump.saved.secured.steps == step.saved.secured.steps);
    REQUIRE(jump.saved.secured.longer == step.saved.secured.longer);
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
  for (bool exchanged : {false, true}) {
    s = busier(), s.stragglers.exchanged = exchanged;
    for (std::uint64_t seed = 0; seed < 20; ++seed) check_equal(simulate_run(s, seed), simulate_run_stepping(s, seed));
  }
}

TEST_CASE("whole runs: jumping equals stepping in scenarios drawn at random") {
  RandomRuns runs;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const RunScenario s = runs.next();
    const RunOutcome run = simulate_run(s, seed);
    INFO("seed " << seed);
    check_equal(run, simulate_run_stepping(s, seed));
    REQUIRE(total(run.buckets_ns) == run.wall_ns);
    if (run.finished) REQUIRE(run.buckets_ns[0] == s.steps * std::llround(s.step_s * 1e9));  // productive
  }
}

TEST_CASE("what is off leaves a run as it was before there was any of it") {
  // Recorded when the simulator knew none of it.
  const RunOutcome run = simulate_run(busy(), 7);
  CHECK(run.wall_ns == 177043965082851);
  CHECK(run.buckets_ns == BucketTimes{146000000000000, 819000000000, 378000000000, 6030100000000, 2210000000000,
                                      3227608425584, 12979256657267, 5400000000000, 0});
  RunScenario never = busy();  // neither rate nor window: the other keys mean nothing
  never.stragglers = {0, 2, 5000, true}, never.maintenance_s = 100;
  never.local = {0, 9, 9, 0.9}, never.silent = {0, 0}, never.tolerance = {0, 900, 90};
  check_equal(simulate_run(never, 7), run);
  never.local = {8, 0, 9, 0};  // copies that no failure leaves
  check_equal(simulate_run(never, 7), run);
  never.stragglers = {1000, 1, 5000};  // slow nodes that slow nothing
  CHECK(simulate_run(never, 7).buckets_ns == run.buckets_ns);
}

TEST_CASE("buckets sum to the wall time, and the work done is the work asked for") {
  for (const RunScenario& s : {busy(), busier()})
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const RunOutcome run = simulate_run(s, seed);
      CHECK(run.finished);
      CHECK(total(run.buckets_ns) == run.wall_ns);
      CHECK(run.bucket_s(Bucket::productive) == Approx(20000 * 7.3).epsilon(1e-12));
      for (std::int64_t time : run.buckets_ns) CHECK(time >= 0);
      if (s.maintenance_every_s == 0)
        CHECK(run.bucket_s(Bucket::custom_events) == Approx(1800.0 * static_cast<double>(run.planned_stops)));
      CHECK((run.bucket_s(Bucket::other) > 0) == (run.stragglers > 0));
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
  slower([](RunScenario& s) { s.stragglers = {20000, 1.1, 5000}; });
  slower([](RunScenario& s) { s.maintenance_every_s = 50000, s.maintenance_s = 600; });
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

TEST_CASE("O14: slow nodes cost a share of all running time that has a closed form") {
  // Nodes slow in the job are an M/D/infinity queue: none is with probability e^(-duration / mean), at any load. A
  // second of running time does a step's work at rate 1 / step, while a node is slow at 1 / (factor step).
  for (const StragglerLaw& law : {StragglerLaw{200000, 1.25, 2000}, {20000, 1.5, 8000}, {5000, 1.1, 15000}}) {
    RunScenario s = smooth();
    s.stragglers = law;
    const RunDistribution d = simulate_runs(s, 50, 21);
    const double slow = -std::expm1(-law.duration_s / law.mean_s), speed = 1 - slow * (1 - 1 / law.factor);
    const double other = d.bucket_mean_s[static_cast<std::size_t>(Bucket::other)];
    CHECK(d.goodput == Approx(speed).epsilon(3e-3));
    CHECK(other == Approx(d.mean_s - 1e7).epsilon(1e-9));
    CHECK(d.stragglers == Approx(d.mean_s / law.mean_s).epsilon(0.05));
    if (slow < 0.02) {  // rare: slow nodes x duration x (1 - 1 / factor), the note's O14
      const double lost = d.mean_s / law.mean_s * law.duration_s * (1 - 1 / law.factor);
      CHECK(other == Approx(lost).epsilon(0.05));
    }
  }
}

TEST_CASE("a slow node that is exchanged costs its slow time, a save and a restart") {
  RunScenario s = smooth();
  s.blocking_s = 4, s.reschedule_s = 300, s.restart_s = 50, s.reload_s = 150;
  const double plain = simulate_run(s, 3).wall_s();
  s.stragglers = {400000, 1.25, 2000, true};
  const RunOutcome run = simulate_run(s, 3);
  const auto n = static_cast<double>(run.stragglers);
  CHECK(n > 10);
  CHECK(run.bucket_s(Bucket::infrastructure_recovery) == Approx(300 * n));
  CHECK(run.bucket_s(Bucket::checkpoint_restore) == Approx(150 * n));
  CHECK(run.bucket_s(Bucket::accelerator_init) == Approx(50 * (n + 1)));
  CHECK(run.planned_stops == 0);
  // Each is slow for its 2,000 s and no more than two steps and a save longer; O14: (1 - 1 / 1.25) of that is lost.
  CHECK(run.bucket_s(Bucket::other) >= 0.2 * (2000 - 12.5 - 20 * 4) * n);
  CHECK(run.bucket_s(Bucket::other) <= 0.2 * (2000 + 12.5) * n);
  CHECK(run.wall_s() == Approx(plain + n * 500 + run.bucket_s(Bucket::other)).margin(4 * n + 1));
  // Never found: slow from the first one on.
  s.stragglers.duration_s = 2e9;
  const RunOutcome slow = simulate_run(s, 3);
  CHECK(slow.wall_s() < 1.25 * plain);
  CHECK(slow.bucket_s(Bucket::other) > 0.2 * 1e7);
}

TEST_CASE("maintenance windows cost their number times duration, save and restart") {
  RunScenario s = smooth();
  s.interval_steps = 997, s.blocking_s = 4, s.restart_s = 50, s.reload_s = 150, s.startup_s = 7;
  const RunOutcome plain = simulate_run(s, 1);
  s.maintenance_every_s = 7 * 86400, s.maintenance_s = 14400;
  const RunOutcome run = simulate_run(s, 1);
  CHECK(run.planned_stops == plain.wall_ns / 604800'000'000'000);  // a week holds more than what the windows add
  CHECK(run.wall_ns - plain.wall_ns == run.planned_stops * (14400 + 4 + 50 + 150 + 7) * 1'000'000'000);
  CHECK(run.bucket_s(Bucket::custom_events) == Approx(14400.0 * static_cast<double>(run.planned_stops)));
  CHECK(run.bucket_s(Bucket::wasted_progress) == 0);
}

TEST_CASE("a window that comes due while the job is down is taken then, without a save") {
  RunScenario s = smooth();
  s.steps = 10000, s.interval_steps = 10, s.failures.mean_s = 20000, s.detect_s = 50000;  // mostly down
  s.maintenance_every_s = 60000, s.maintenance_s = 100;
  std::int64_t windows = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RunOutcome run = simulate_run(s, seed);
    CHECK(run.bucket_s(Bucket::custom_events) == Approx(100.0 * static_cast<double>(run.planned_stops)));
    CHECK(run.planned_stops <= run.wall_ns / 60'000'000'000'000);
    windows += run.planned_stops;
    check_equal(run, simulate_run_stepping(s, seed));
  }
  CHECK(windows > 20);
}

TEST_CASE("O5: the mean work lost to a failure in an interval") {
  RunScenario s;  // one interval, minutes: every failure loses all of it so far
  s.steps = s.interval_steps = 600, s.step_s = 6, s.failures.mean_s = 180 * 60;
  const RunDistribution d = simulate_runs(s, 100000, 14);
  const double lost = d.bucket_mean_s[static_cast<std::size_t>(Bucket::wasted_progress)];
  CHECK(lost / d.failures / 60 == Approx(expected_lost(60, 180)).epsilon(0.01));
}

TEST_CASE("O10 and O11: first-order estimates hold where failures are rare") {
  RunScenario s;  // an hour between saves of 30 s, 16.5 h between failures
  s.steps = 1000000, s.step_s = 10, s.interval_steps = 360, s.blocking_s = 30;
  s.detect_s = 300, s.failures.mean_s = 16.5 * 3600;
  const double without_persist = simulate_runs(s, 50, 15).goodput;
  // Meta states 5 % against its own Monte Carlo.
  CHECK(without_persist == Approx(meta_ettr(16.5 * 3600, 300, 30, 3600)).epsilon(0.05));
  s.persist_s = 600;
  // Waste is C / tau + (tau / 2 + P + D) / M; persisting slows no step here.
  CHECK(1 / simulate_runs(s, 50, 15).goodput - 1 ==
        Approx(30.0 / 3600 + (1800.0 + 600 + 300) / (16.5 * 3600)).epsilon(0.05));
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
  CHECK(std::ranges::count_if(d.wall_s, [&](double each) { return each < d.p50_s; }) == 250);
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

TEST_CASE("what comes once in more than a life of the run is as good as never") {
  RunScenario never = busy();
  never.planned_mean_s = 0, never.stragglers.mean_s = 0;
  const RunOutcome without = simulate_run(never, 5);
  for (const double mean_s : {1e12, 1e300}) {
    RunScenario rare = never;
    rare.planned_mean_s = mean_s, rare.planned_stop_s = 60, rare.stragglers.mean_s = mean_s;
    CHECK(simulate_run(rare, 5).wall_ns == without.wall_ns);
  }
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
  refused([](RunScenario& s) { s.stragglers.factor = 0.9; }, "found a step 0.9 times as long");
  refused([](RunScenario& s) { s.stragglers.factor = std::nan(""); }, "at least 1");
  refused([](RunScenario& s) { s.stragglers.mean_s = 1; }, "needs at least a step");
  refused([](RunScenario& s) { s.stragglers.duration_s = -1; }, "found -1 s");
  refused([](RunScenario& s) { s.planned_mean_s = std::nan(""); }, "planned_mean_s: found nan s");
  refused([](RunScenario& s) { s.maintenance_every_s = 60, s.maintenance_s = 60; }, "maintenance of 60 s every 60 s");
  refused([](RunScenario& s) { s.local.interval_steps = 7; }, "needs a divisor of the 40 steps");
  refused([](RunScenario& s) { s.local.interval_steps = -1; }, "found -1");
  refused([](RunScenario& s) { s.local.survival = 1.1; }, "found 1.1");
  refused([](RunScenario& s) { s.local = {40, -1}; }, "local.blocking_s");
  refused([](RunScenario& s) { s.silent.mean_s = -1; }, "silent.mean_s");
  refused([](RunScenario& s) { s.silent.verify_s = std::nan(""); }, "found nan s");
  refused([](RunScenario& s) { s.tolerance.replicas = 1; }, "at least 2");
  refused([](RunScenario& s) { s.tolerance = {4, 1e300, 0}; }, "tolerance.recover_s");
  refused([](RunScenario& s) { s.tolerance = {4, 600, 9000}; }, "further apart than a stall");
  refused([](RunScenario& s) { s.steps = 1'000'000'000'000; }, "70 years");
  CHECK_THROWS_WITH(simulate_runs(busy(), 0, 1), Catch::Contains("found 0"));
}
