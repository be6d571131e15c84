// Closed forms of recovery policies against golden vectors (derived for this project and checked by Monte
// Carlo there), and the break-evens built on them.
#include "planner/cadence/recovery_formulas.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "planner/cadence/cadence_formulas.hpp"
#include "sim/months/simulate_run.hpp"
#include "tests/fixtures/cadence_references.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("O15: Erlang's B is the share of the time without a spare") {
  const double load = 384 * 3.79e-3;  // a day of repair
  const double expected[] = {0.59273, 0.30134, 0.12754, 0.04435, 0.01274, 0.00308};
  for (int s = 1; s <= 6; ++s) CHECK(erlang_b(s, load) == Approx(expected[s - 1]).margin(6e-6));
  CHECK(erlang_b(0, load) == 1);
}

TEST_CASE("O16: checkpoints on two levels") {
  TwoLevels l{.mtbf = 180,
              .local_interval = 5,
              .locals_a_save = 6,
              .blocking = 0.1,
              .downtime = 10,
              .local_reload = 0.5,
              .reload = 3};
  const double survival[] = {0, 0.8, 1}, expected[] = {0.838836, 0.897901, 0.913293};
  for (int i = 0; i < 3; ++i) {
    l.survival = survival[i];
    CHECK(two_level_goodput(l) == Approx(expected[i]).margin(6e-7));
  }
  l = {.mtbf = 60,
       .local_interval = 2,
       .locals_a_save = 15,
       .blocking = 0.05,
       .survival = 0.95,
       .downtime = 5,
       .local_reload = 0.2,
       .reload = 4};
  CHECK(two_level_goodput(l) == Approx(0.869330).margin(6e-7));
}

TEST_CASE("O16 with copies that nothing survives is O4 with the reload as downtime") {
  const TwoLevels l{.mtbf = 180, .local_interval = 5, .locals_a_save = 1, .blocking = 0.1, .downtime = 10, .reload = 3};
  CHECK(two_level_goodput(l) == Approx(5 / expected_time(5, 5, 0.1, 13, 0, 180)).epsilon(1e-12));
}

TEST_CASE("O17: replicas as the unit of failure") {
  CHECK(replica_goodput(8, 60, 20, 1, 0) == Approx(0.94488).margin(5e-4));
  const std::int64_t microbatches[] = {1, 2, 4, 8};
  const double expected[] = {0.86069, 0.90662, 0.93889, 0.94114};
  for (int i = 0; i < 4; ++i) CHECK(replica_goodput(8, 60, 20, 0, microbatches[i]) == Approx(expected[i]).margin(6e-6));
  CHECK(replica_availability(8, 60, 20) == Approx(0.96).epsilon(1e-12));
}

TEST_CASE("O17: the first lost replica costs more than its share where microbatches are few") {
  const double of_8[] = {2, 1.5, 1.25, 1.25}, of_12[] = {2, 1.5, 1.25, 1.125};
  for (int i = 0; i < 4; ++i) {
    CHECK(replica_step_factor(8, 7, 1 << i) == of_8[i]);
    CHECK(replica_step_factor(12, 11, 1 << i) == of_12[i]);
  }
  CHECK(replica_step_factor(8, 7, 0) == Approx(1.143).margin(5e-4));
  CHECK(replica_step_factor(12, 11, 0) == Approx(1.091).margin(5e-4));
}

TEST_CASE("O18: a job that stops to shrink and to grow") {
  CHECK(elastic_goodput(48, 990, 1440, 5) == Approx(0.96117).margin(6e-6));
}

TEST_CASE("O20: retention against a silent error that is found late") {
  CHECK(no_clean_save(30, 60, 3) == Approx(0.28950).margin(6e-6));
  // 400,000 errors: standard error 7e-4.
  std::mt19937_64 engine(7);
  std::exponential_distribution<double> latency(1 / 60.0);
  std::uniform_real_distribution<double> since_save(0, 30);
  int lost = 0;
  for (int i = 0; i < 400000; ++i) {
    // The newest save lies since_save before the error is found, the oldest two intervals before that.
    lost += latency(engine) > since_save(engine) + 2 * 30;
  }
  CHECK(lost / 400000.0 == Approx(0.28950).margin(2.5e-3));
}

TEST_CASE("break-evens are where two policies come to the same") {
  // Going on without a replica: D + R = 10, tau = 31, stall 3 + 30 / 12, M = 990 pay up to an overhead of 2.0 %.
  const double overhead = (10 + 31 / 2.0 - (3 + 30 / 12.0)) / 990;
  CHECK(overhead == Approx(0.020).margin(5e-4));
  CHECK(replica_loss_that_pays(7, 3, 31, overhead, 990) == Approx(3 + 30 / 12.0));
  // At the survival that pays, what local copies save of each failure is what five of six copies cost between two; the
  // sixth is the save's own.
  const double q = survival_that_pays(30, 2, 3, 990, 5, 0.05, 0.5);
  CHECK(q * (30 / 2.0 + 2 + 3 - 5 / 2.0 - 0.5) == Approx(990 / 30.0 * 5 * 0.05));
  CHECK(survival_that_pays(5, 0, 0, 990, 5, 0.1, 0) == INFINITY);
}

TEST_CASE("local copies break even where two levels come to one: O16 on both sides") {
  // Failures are rare, so that the break-even of the first order is that of O16 to a percent.
  const double interval = 600, copy = 0.2, reload = 100, local_reload = 2, mtbf = 1e5;
  const TwoLevels one{.mtbf = mtbf, .local_interval = interval, .blocking = copy, .downtime = 300, .reload = reload};
  for (const std::int64_t copies : {2, 4, 10}) {
    const double q =
        survival_that_pays(interval, 0, reload, mtbf, interval / static_cast<double>(copies), copy, local_reload);
    REQUIRE((q > 0 && q < 0.9));
    TwoLevels two = one;
    two.local_interval = interval / static_cast<double>(copies), two.locals_a_save = copies;
    two.local_reload = local_reload;
    for (const double side : {0.97, 1.03}) {
      two.survival = side * q;
      INFO(copies << " copies, survival " << two.survival);
      CHECK((two_level_goodput(two) > two_level_goodput(one)) == (side > 1));
    }
  }
}

TEST_CASE("hot spares break even where their idle node-time is what they save") {
  // 384 nodes, a failure in 990 minutes, a cold spare takes 5.5 of them: one standby idles 990 node-minutes.
  const double ready = activation_that_pays(5.5, 990, 384, 1);
  CHECK(384 * (5.5 - ready) == Approx(990));
  CHECK(activation_that_pays(5.5, 990, 384, 0) == 5.5);
  CHECK(activation_that_pays(5.5, 990, 384, 3) < 0);
}

TEST_CASE("a check before each save breaks even where O8 comes to what unchecked errors lose") {
  const double interval = 617, verify = 1, latency = 86400;
  const double silent = silent_mtbf_that_pays(interval, latency, verify);
  const double checked = verified_segment(interval, verify, 0, 0, silent) / interval - 1;
  const double unchecked = (latency + interval / 2) / silent;
  CHECK(checked == Approx(unchecked).epsilon(0.01));
  CHECK(checked > 0.9 * verify / interval);
  CHECK(silent_mtbf_that_pays(600, 300, 1) == 0);  // found as soon without a check
  CHECK(silent_mtbf_that_pays(interval, latency_that_pays(interval, 1e7, verify), verify) == Approx(1e7));
}

TEST_CASE("what unchecked silent errors leave: a run that trains, errs, finds it late and rolls back") {
  const double interval = 600, latency = 9000, silent = 60000, down = 300, goodput = 0.95;
  std::mt19937_64 engine(1);
  std::exponential_distribution<double> errs(1 / silent), found(1 / latency);
  double kept = 0, wall = 0;
  for (int i = 0; i < 200000; ++i) {
    const double error = errs(engine), trained = error + found(engine);
    kept += std::floor(error / interval) * interval;  // the save before the error
    wall += trained / goodput + down;
  }
  CHECK(unchecked_goodput(goodput, interval, latency, silent, down) == Approx(kept / wall).epsilon(0.005));
  CHECK(unchecked_goodput(goodput, interval, 0, 1e15, 0) == Approx(goodput));
  CHECK(unchecked_goodput(goodput, interval, latency, 200, down) == 0);
}
