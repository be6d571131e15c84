// Runs with local checkpoints, verified saves and tolerated losses of replicas: the closed forms O7, O8 and O13 inside
// the envelopes stated with each, and what follows from the definitions without chance.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "planner/cadence/cadence_formulas.hpp"
#include "planner/cadence/recovery_formulas.hpp"
#include "sim/months/simulate_run.hpp"
#include "tests/fixtures/cadence_references.hpp"

using namespace wt;
using namespace wt::test;

namespace {

double mean_s(const RunDistribution& d, Bucket bucket) { return d.bucket_mean_s[static_cast<std::size_t>(bucket)]; }

/// Ten-second steps, saves that only block, nothing else: what is added is all there is to see.
RunScenario smooth(std::int64_t interval_steps, double blocking_s) {
  RunScenario s;
  s.steps = 800000, s.step_s = 10, s.interval_steps = interval_steps, s.blocking_s = blocking_s;
  return s;
}

}  // namespace

TEST_CASE("O7: two levels of checkpoints cost what the formula says, and other periods more") {
  // 9 of 10 failures leave local copies intact. A save is a local one and 40 s more, 12 h between failures: the
  // overhead is 2.3 %, terms of second order are a hundredth of it. Envelope: 3 % of the overhead.
  const double mtbf = 43200, survival = 0.9;
  const CheckpointLevel local{2, mtbf / survival}, global{40, mtbf / (1 - survival)};
  const auto steps = [](const CheckpointLevel& level) {
    return static_cast<std::int64_t>(std::llround(young_interval(level.blocking, level.mtbf) / 10));
  };
  const std::int64_t inner = steps(local), outer = steps(global) / inner * inner;
  const auto overhead = [&](std::int64_t every, std::int64_t interval) {
    RunScenario s = smooth(interval, 42);
    s.failures.mean_s = mtbf, s.local = {every, 2, 0, survival};
    const RunDistribution d = simulate_runs(s, 2000, 31);
    CHECK(d.finished == 2000);
    return d.mean_s / (static_cast<double>(s.steps) * s.step_s) - 1;
  };
  const double best = overhead(inner, outer);
  CHECK(best == Approx(multilevel_overhead({local, global})).epsilon(0.03));
  for (const auto& [every, interval] : {std::pair{inner, 2 * outer},
                                        {inner, outer / inner / 2 * inner},
                                        {3 * inner, outer / inner / 3 * 3 * inner},
                                        {std::max<std::int64_t>(1, inner / 3), outer / inner * (inner / 3) * 3}})
    CHECK(overhead(every, interval) > best);
  // The formula at periods that are not the best ones: sum of C / tau + tau / (2 M).
  const double tau1 = 20.0 * 10, tau2 = 400.0 * 10;
  CHECK(overhead(20, 400) ==
        Approx(2 / tau1 + 40 / tau2 + tau1 / 2 / local.mtbf + tau2 / 2 / global.mtbf).epsilon(0.03));
}

TEST_CASE("local saves that survive everything are all the saves there are") {
  RunScenario s = smooth(100000, 5);
  s.failures.mean_s = 20000, s.detect_s = 60, s.reload_s = 50, s.local = {100, 5, 50, 1};
  RunScenario one = s;
  one.local = {}, one.interval_steps = 100;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    CHECK(simulate_run(s, seed).buckets_ns == simulate_run(one, seed).buckets_ns);
  // The slow reload is for the few failures before the first local save after a start or a persisted save.
  s.reload_s = 500;
  const RunDistribution d = simulate_runs(s, 200, 30);
  CHECK(mean_s(d, Bucket::checkpoint_restore) > 50 * d.failures);
  CHECK(mean_s(d, Bucket::checkpoint_restore) == Approx(50 * d.failures).epsilon(0.05));
}

TEST_CASE("falling back to the persisted save takes kept work back") {
  RunScenario s = smooth(1000, 5);
  s.steps = 20000, s.failures.mean_s = 6000, s.local = {10, 1, 5, 0.7};
  s.stragglers = {20000, 1.5, 9000};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RunOutcome run = simulate_run(s, seed);
    CHECK(std::accumulate(run.buckets_ns.begin(), run.buckets_ns.end(), std::int64_t{0}) == run.wall_ns);
    for (std::int64_t time : run.buckets_ns) CHECK(time >= 0);
    if (run.finished) CHECK(run.bucket_s(Bucket::productive) == Approx(200000).epsilon(1e-12));
  }
}

TEST_CASE("O8: a verified segment takes the expected time") {
  // Exact for exponential errors, so that only chance is left: M 180, tau 30, V = C = 1 min, R 0 -> 37.6222 a segment.
  // 4000 runs of 200 segments; the standard error is 0.017 min.
  RunScenario s;
  s.steps = 6000, s.step_s = 60, s.interval_steps = 30, s.blocking_s = 60;
  s.silent = {180 * 60, 60};
  const auto segment = [&] { return simulate_runs(s, 4000, 32).mean_s / 60 / 200; };
  CHECK(segment() == Approx(37.6222).margin(0.06));
  const RunDistribution d = simulate_runs(s, 1000, 32);
  CHECK(d.failures == 0);
  CHECK(mean_s(d, Bucket::wasted_progress) == Approx(d.silent_errors * 1800).epsilon(1e-9));  // each loses all of tau
  CHECK(mean_s(d, Bucket::custom_events) == Approx((200 + d.silent_errors) * 60).epsilon(1e-9));
  CHECK(d.silent_errors == Approx(200 * std::expm1(30 / 180.0)).epsilon(0.02));
  s.reload_s = 360;
  CHECK(segment() == Approx(verified_segment(30, 1, 1, 6, 180)).margin(0.07));
  s.silent.mean_s = 0;
  CHECK(simulate_run(s, 1).wall_s() == Approx(200 * (30 + 1 + 1) * 60.0));  // verification without errors
}

TEST_CASE("O8: its interval is best with failures, too") {
  // An error every 10 h and a failure every 15 h, V + C of 60 s: first order is right where tau is short beside both.
  const double silent = 36000, mtbf = 54000;
  const auto best = static_cast<std::int64_t>(verified_interval(20, 40, silent, mtbf) / 10);
  const auto goodput = [&](std::int64_t interval) {
    RunScenario s = smooth(interval, 40);
    s.failures.mean_s = mtbf, s.silent = {silent, 20};
    return simulate_runs(s, 500, 33).goodput;
  };
  CHECK(goodput(best) > goodput(best / 2));
  CHECK(goodput(best) > goodput(best * 2));
  // Overhead to first order at the best interval: 2 sqrt((V + C) (1/M_s + 1/(2 M_f))). Envelope: 5 % of it.
  CHECK(1 / goodput(best) - 1 == Approx(2 * std::sqrt(60 * (1 / silent + 0.5 / mtbf))).epsilon(0.05));
}

TEST_CASE("O13: goodput where a failure stops one replica of many") {
  // G 16, M 3.09 h, t_rec 10 min -> 0.9966; 2000 runs of 90 days. Speeds are 1 - t_rec / (G M) exactly; the formula is
  // that to first order. Envelope: t_rec / (G M) and t_stall / M below 2 %, then 5e-4. Half a step of 10 s is done
  // again, and a replica that is back waits for as long. Too few replicas (O14) lose half of the hour between saves.
  const double mtbf = 3.09 * 3600;
  for (const auto& [replicas, recover, stall] :
       {std::tuple{16, 600.0, 0.0}, {16, 600.0, 180.0}, {4, 600.0, 30.0}, {64, 7200.0, 60.0}}) {
    RunScenario s = smooth(360, 0);
    s.failures.mean_s = mtbf, s.tolerance = {replicas, recover, stall};
    const RunDistribution d = simulate_runs(s, 2000, 34);
    INFO(replicas << " replicas, " << recover << " s, stall " << stall << " s");
    const double restart_every = replicas_lost_mtbf(replicas, mtbf, recover + stall), lost = 1800 / restart_every;
    CHECK(d.goodput == Approx(replica_goodput(replicas, mtbf, recover + 5, stall + 5, 0) - lost).margin(5e-4));
    CHECK(mean_s(d, Bucket::infrastructure_recovery) == Approx(d.failures * stall).epsilon(0.03));
    CHECK(d.failures == Approx(d.mean_s / mtbf).epsilon(0.01));
    CHECK(mean_s(d, Bucket::other) == Approx(d.failures * recover / replicas).epsilon(0.04));
    CHECK(mean_s(d, Bucket::wasted_progress) == Approx(d.failures * 5 + d.mean_s * lost).epsilon(0.1));
    if (stall == 0) CHECK(d.goodput + 5 / mtbf == Approx(0.9966).margin(1e-4));
  }
}

TEST_CASE("too few replicas restart from a checkpoint, and a spare that is not there keeps a replica away") {
  RunScenario s = smooth(100, 1);
  s.steps = 100000, s.failures.mean_s = 5000, s.detect_s = 30, s.restart_s = 20, s.reload_s = 10;
  s.tolerance = {2, 4000, 5};  // the second of two is often lost while the first is away
  const RunOutcome run = simulate_run(s, 5);
  const double restarts = run.bucket_s(Bucket::checkpoint_restore) / 10;
  CHECK(restarts > 10);
  CHECK(restarts < static_cast<double>(run.failures) / 2);  // each takes two losses
  CHECK(run.bucket_s(Bucket::accelerator_init) == Approx(20 * (restarts + 1)));
  CHECK(run.bucket_s(Bucket::wasted_progress) > 0);
  s.tolerance = {64, 4000, 5};  // never
  const RunOutcome many = simulate_run(s, 5);
  CHECK(many.bucket_s(Bucket::checkpoint_restore) == 0);
  // The steps under way, each for half of its 10 s in the mean: standard deviation 2.9 s over the root of the losses.
  const double losses = static_cast<double>(many.failures);
  CHECK(many.bucket_s(Bucket::wasted_progress) / losses == Approx(5).margin(4 * 2.9 / std::sqrt(losses)));
  s.spares = 0, s.repair_s = 12000;
  const RunOutcome waiting = simulate_run(s, 5);
  CHECK(waiting.bucket_s(Bucket::other) == Approx(3 * many.bucket_s(Bucket::other)).epsilon(0.1));
}
