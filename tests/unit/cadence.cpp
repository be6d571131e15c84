// Closed forms O1..O13 of checkpoint cadence against golden vectors, and the cadence plan built on them.
#include <catch2/catch.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "planner/cadence/cadence.hpp"
#include "planner/cadence/cadence_formulas.hpp"
#include "planner/cadence/cadence_runs.hpp"
#include "planner/cadence/recovery_formulas.hpp"
#include "tests/fixtures/cadence_references.hpp"

using namespace wt;
using namespace wt::test;

namespace {

SourcedNumber assumed(double value) { return {value, {Evidence::assumed, "this test"}}; }

CadenceInput dbrx() {  // 3072 H100 at Llama 3's rate
  CadenceInput in;
  in.step_s = assumed(10);
  in.nodes = 384;
  in.mtbf_s = read_failures("llama3").job_mtbf_s(384);
  in.blocking_s = assumed(30), in.persist_s = assumed(0);
  in.recovery = {assumed(120), assumed(180), assumed(120), assumed(180)};
  in.repair_s = assumed(86400);
  return in;
}

/// On the same failures: half of the interval is better by no more than what the chosen one gives up to write less.
void check_half_and_twice_are_worse(const CadenceRuns& runs, std::int64_t number) {
  const std::int64_t least = std::max<std::int64_t>(1, runs.scenario.local.interval_steps);
  const std::int64_t chosen = runs.scenario.interval_steps;
  for (std::int64_t steps : {std::max(least, chosen / 2 / least * least), 2 * chosen}) {
    RunScenario other = runs.scenario;
    other.interval_steps = steps;
    const double allowed = steps < chosen ? 1 + kGoodputForLessWriting : 1;
    CHECK(simulate_runs(other, number, 1).goodput < allowed * runs.distribution.goodput);
  }
}

}  // namespace

TEST_CASE("O3 gives Daly's published optima") {
  // M = 24 h, 6 h, 15 min with C = 5 min; minutes. The captions of the paper say 117, 57, 9.1.
  const double mtbf[] = {1440, 360, 15}, exact[] = {116.690, 56.714, 9.167};
  for (int i = 0; i < 3; ++i) CHECK(exact_interval(5, mtbf[i]) == Approx(exact[i]).margin(6e-4));
  CHECK(exact_interval(0, 100) == 0);
}

TEST_CASE("O1 is the limit of O3 for cheap saves") {
  CHECK(young_interval(2, 100) == Approx(20));
  CHECK(exact_interval(1e-4, 1e4) == Approx(young_interval(1e-4, 1e4)).epsilon(1e-3));
}

TEST_CASE("O3 beats its neighbours in O4") {
  for (double mtbf : {30.0, 180.0, 5000.0})
    for (double blocking : {0.01, 1.0, 20.0}) {
      const double best = exact_interval(blocking, mtbf);
      const auto time = [&](double tau) { return expected_time(1e4, tau, blocking, 2, 5, mtbf); };
      CHECK(time(best) < time(best * 0.98));
      CHECK(time(best) < time(best * 1.02));
      CHECK(time(best) <= time(young_interval(blocking, mtbf)));
    }
}

TEST_CASE("O4 and O5 golden vectors") {
  CHECK(expected_time(510, 30, 1, 2, 5, 120) == Approx(637.365).margin(6e-4));
  CHECK(expected_lost(10, 180) == Approx(4.9537).margin(6e-5));
  CHECK(expected_lost(60, 180) == Approx(28.3364).margin(6e-5));
  CHECK(expected_lost(300, 180) == Approx(110.143).margin(6e-4));
}

TEST_CASE("O6 golden vectors, Weibull shapes and persist times") {
  const double shape[] = {1, 0.7, 0.5}, none[] = {0.840126, 0.845492, 0.854994},
               eight[] = {0.803604, 0.813950, 0.829768};
  for (int i = 0; i < 3; ++i) {
    const auto survival = weibull_survival(180, shape[i]);
    CHECK(persisted_goodput(survival, 180, 30, 1, 0, 10, 0) == Approx(none[i]).margin(6e-7));
    CHECK(persisted_goodput(survival, 180, 30, 1, 8, 10, 0) == Approx(eight[i]).margin(6e-7));
  }
  CHECK(persisted_goodput(180, 30, 1, 8, 10, 4) ==
        Approx(persisted_goodput(weibull_survival(180, 1), 180, 30, 1, 8, 10, 4)).epsilon(1e-12));
}

TEST_CASE("O6 without persist is O4") {
  CHECK(1 / persisted_goodput(120, 30, 1, 0, 2, 5) == Approx(expected_time(1, 30, 1, 2, 5, 120)));
}

TEST_CASE("goodput falls with every cost and approaches tau / (tau + C) without failures") {
  const double base = persisted_goodput(180, 30, 1, 8, 10, 5);
  CHECK(persisted_goodput(170, 30, 1, 8, 10, 5) < base);
  CHECK(persisted_goodput(180, 30, 2, 8, 10, 5) < base);
  CHECK(persisted_goodput(180, 30, 1, 9, 10, 5) < base);
  CHECK(persisted_goodput(180, 30, 1, 8, 11, 5) < base);
  CHECK(persisted_goodput(180, 30, 1, 8, 10, 6) < base);
  CHECK(persisted_goodput(1e12, 30, 1, 8, 10, 5) == Approx(30.0 / 31));
}

TEST_CASE("the longest interval within a share of the best goodput has that share of it") {
  for (const double blocking : {0.0, 0.01, 1.0, 30.0})
    for (const double mtbf : {90.0, 5000.0, 1e9}) {
      const double optimum = exact_interval(blocking, mtbf);
      const auto goodput = [&](double tau) { return persisted_goodput(mtbf, tau, blocking, 0, 0, 0); };
      for (const double best : {std::max(optimum, 1.0), 2 * optimum + 3}) {
        const double longest = longest_interval(blocking, mtbf, best, 1e-3);
        CHECK(longest > best);
        CHECK(goodput(longest) == Approx(0.999 * goodput(best)).epsilon(1e-9));
      }
    }
  // To second order: goodput falls by (C / tau) (1 + x^2 / 2 + ...) twice, so that x^2 = 2e-3 tau / (2 C) at C << M.
  const double optimum = exact_interval(0.5, 1e6);
  CHECK(longest_interval(0.5, 1e6, optimum, 1e-5) / optimum - 1 == Approx(std::sqrt(2e-5 * optimum / 1)).epsilon(0.1));
}

TEST_CASE("O7, O8 and O13 golden vectors") {
  CHECK(multilevel_overhead({{5, 1000}}) == Approx(std::sqrt(2 * 5 / 1000.0)));
  CHECK(multilevel_overhead({{5, 1000}, {8, 400}}) == Approx(0.1 + 0.2));
  CHECK(verified_segment(30, 1, 1, 0, 180) == Approx(37.6222).margin(6e-5));
  CHECK(verified_segment(30, 1, 1, 6, 180) == Approx(37.6222 + 6 * std::expm1(30 / 180.0)).margin(6e-5));
  CHECK(replica_goodput(16, 3.09, 10 / 60.0, 0, 0) == Approx(0.9966).margin(6e-5));
}

TEST_CASE("O8's interval beats its neighbours where it is short beside the time between errors") {
  for (double silent : {5e3, 1e5}) {
    const double best = verified_interval(1, 1, silent, INFINITY);
    CHECK(best == Approx(std::sqrt(2 * silent)));
    const auto rate = [&](double tau) { return verified_segment(tau, 1, 1, 5, silent) / tau; };
    CHECK(rate(best) < rate(best * 0.9));
    CHECK(rate(best) < rate(best * 1.1));
  }
  CHECK(verified_interval(0, 2, INFINITY, 100) == young_interval(2, 100));
}

TEST_CASE("O10 gives Meta's expected ETTR") {
  // 2000 nodes at 6.50 per 1000 node-days, u0 = 5 min, w = 0: quoted 0.70 at 60 min and 0.93 at 5 min.
  const double mtbf = read_failures("rsc1").job_mtbf_s(2000).value / 60;
  CHECK(meta_ettr(mtbf, 5, 0, 60) == Approx(0.684).margin(6e-4));
  CHECK(meta_ettr(mtbf, 5, 0, 5) == Approx(0.932).margin(6e-4));
}

TEST_CASE("O12 spares") {
  const double rate = 3.79e-3 / 86400;
  const auto both = [&](std::int64_t nodes, double hours) {
    return std::pair{spares_needed(nodes, rate, hours * 3600, 0.99), spares_needed(nodes, rate, hours * 3600, 0.999)};
  };
  CHECK(both(384, 2) == std::pair<std::int64_t, std::int64_t>{1, 2});
  CHECK(both(384, 24) == std::pair<std::int64_t, std::int64_t>{5, 6});
  CHECK(both(384, 72) == std::pair<std::int64_t, std::int64_t>{10, 12});
  CHECK(both(2048, 24) == std::pair<std::int64_t, std::int64_t>{15, 18});
  CHECK(spares_needed(384, 0, 3600, 0.99) == 0);
  CHECK_THROWS_WITH(spares_needed(384, rate, 3600, 1.0), Catch::Contains("found confidence 1"));
}

TEST_CASE("O9: Saxena's availability-optimal interval loses next to nothing against O3") {
  // tau = sqrt(2 (Tf + Tr) Ts + Ts^2) with Ts the save, Tf the time between failures, Tr the recovery.
  for (double mtbf : {360.0, 1440.0})
    for (double blocking : {0.5, 5.0}) {
      const double saxena = std::sqrt(2 * (mtbf + 10) * blocking + blocking * blocking);
      const double best = expected_time(1, exact_interval(blocking, mtbf), blocking, 0, 10, mtbf);
      CHECK(expected_time(1, saxena, blocking, 0, 10, mtbf) < 1.001 * best);
      CHECK(expected_time(1, saxena, blocking, 0, 10, mtbf) >= best);
    }
}

TEST_CASE("the cadence of a 3072-GPU run is the published table's") {
  // MTTF 16.5 h, 30 s blocking, restart 10 min: 31.1 min and 95.9 %.
  CadenceInput in = dbrx();
  in.recovery = {assumed(0), assumed(600), assumed(0), assumed(0)};
  const CadencePlan plan = choose_cadence(in);
  const double mtbf = in.mtbf_s.value, best = exact_interval(30, mtbf);
  CHECK(best / 60 == Approx(31.1).margin(0.1));
  CHECK(goodput_at(in, best, mtbf) == Approx(0.959).margin(5e-4));
  CHECK(plan.goodput.value >= 0.999 * goodput_at(in, best, mtbf));  // and writes less than the best
  CHECK(plan.interval_s.value > 1.2 * best);
  CHECK(plan.spares.value == 5);
  CHECK_FALSE(plan.persist_bound);
}

TEST_CASE("the interval is never shorter than the persist time or a step") {
  CadenceInput in = dbrx();
  in.persist_s = assumed(7205);
  CadencePlan plan = choose_cadence(in);
  CHECK(plan.interval_steps == static_cast<std::int64_t>(longest_interval(30, in.mtbf_s.value, 7210, 1e-3) / 10));
  CHECK(plan.interval_steps >= 721);
  CHECK(plan.persist_bound);
  in.persist_s = assumed(0), in.blocking_s = assumed(0);
  plan = choose_cadence(in);  // saves that cost nothing: after every step, but for what writes less
  CHECK(plan.interval_s.value / 2 / in.mtbf_s.value == Approx(1e-3).margin(1e-4));
  CHECK_FALSE(plan.persist_bound);
}

TEST_CASE("the interval is the longest whole number of steps with 99.9 % of the best goodput") {
  for (const double slowdown : {0.0, 0.3}) {
    CadenceInput in = dbrx();
    in.persist_s = assumed(100), in.slowdown = assumed(slowdown);
    const auto goodput = [&](std::int64_t steps) {
      return goodput_at(in, static_cast<double>(steps) * 10, in.mtbf_s.value);
    };
    double best = 0;
    for (std::int64_t steps = 10; steps < 3000; ++steps) best = std::max(best, goodput(steps));
    const std::int64_t chosen = choose_cadence(in).interval_steps;
    CHECK(goodput(chosen) >= 0.999 * best);
    CHECK(goodput(chosen + 1) < 0.999 * best);
  }
}

TEST_CASE("O11: what training loses while a save persists is a cost of the save") {
  CadenceInput in = dbrx(), blocking = dbrx();
  in.persist_s = assumed(200), in.slowdown = assumed(0.25);
  blocking.persist_s = assumed(200), blocking.blocking_s = assumed(30 + 0.25 * 200);
  const CadencePlan plan = choose_cadence(in), same = choose_cadence(blocking);
  CHECK(plan.interval_steps == same.interval_steps);
  CHECK(plan.goodput.value == same.goodput.value);
  // O11: waste = (C + s P) / tau + (tau / 2 + P + D) / M, to first order.
  const double mtbf = 1e8, tau = 2e5;
  in.recovery = {assumed(300), assumed(0), assumed(0), assumed(0)};
  CHECK(1 - goodput_at(in, tau, mtbf) == Approx((30 + 0.25 * 200) / tau + (tau / 2 + 200 + 300) / mtbf).epsilon(2e-3));
  CHECK(run_scenario(in, plan, 1000).blocking_s == 80);
  in.slowdown = assumed(1);
  CHECK_THROWS_WITH(choose_cadence(in), Catch::Contains("a share of 1 while a save persists"));
}

TEST_CASE("every number of a cadence says where it comes from") {
  const CadencePlan plan = choose_cadence(dbrx());
  for (const SourcedNumber* n : {&plan.interval_s, &plan.goodput, &plan.spares})
    CHECK_THAT(n->evidence.source, Catch::Contains("384 nodes x 3.79 per 1000 node-days"));
}

TEST_CASE("a cadence without a failure rate or with a negative time is refused") {
  CadenceInput in = dbrx();
  in.mtbf_s.value = 0;
  CHECK_THROWS_WITH(choose_cadence(in), Catch::Contains("mean time between failures: found 0 s"));
  in = dbrx();
  in.persist_s.value = -1;
  CHECK_THROWS_WITH(choose_cadence(in), Catch::Contains("persist: found -1 s"));
}

TEST_CASE("simulated runs confirm the plan: goodput as computed, half and twice the interval no better") {
  CadenceInput in = cadence_input(read_failures("rsc1"), 384, assumed(10), assumed(30), assumed(60), assumed(4 * 3600));
  in.spare_confidence = 0.9999;
  const CadencePlan plan = choose_cadence(in);
  const CadenceRuns runs = simulate_cadence(in, plan, 90 * 8640);
  CHECK(std::abs(runs.distribution.goodput - plan.goodput.value) < 1e-3);
  check_half_and_twice_are_worse(runs, 1000);
  CHECK(runs.distribution.failures * in.mtbf_s.value == Approx(runs.distribution.mean_s).epsilon(0.05));
}

TEST_CASE("local saves and silent errors move the interval, and reach the simulated runs") {
  CadenceInput in = cadence_input(read_failures("rsc1"), 384, assumed(10), assumed(30), assumed(60), assumed(4 * 3600));
  const CadencePlan plain = choose_cadence(in);
  in.local = {7, 1, 5, 0.75};
  const CadencePlan local = choose_cadence(in);
  CHECK(local.interval_steps % 7 == 0);
  CHECK(local.interval_s.value == Approx(2 * plain.interval_s.value).epsilon(0.07));  // a quarter of the failures
  const CadenceRuns runs = simulate_cadence(in, local, 30 * 8640, 200);
  CHECK(runs.scenario.local.interval_steps == 7);
  CHECK(runs.distribution.runs == 200);
  in.local = {}, in.silent = {in.mtbf_s.value, 30};
  const CadencePlan silent = choose_cadence(in);
  const double verified = verified_interval(30, 30, in.mtbf_s.value, in.mtbf_s.value);
  CHECK(silent.interval_s.value == Approx(longest_interval(60, in.mtbf_s.value / 3, verified, 1e-3)).epsilon(0.05));
  CHECK_THAT(silent.interval_s.evidence.source, Catch::Contains("silent errors twice"));
  CHECK(simulate_cadence(in, silent, 30 * 8640, 200).distribution.silent_errors > 50);
  in.silent = {}, in.tolerance = {16, 600, 60};
  CHECK(choose_cadence(in).interval_steps == plain.interval_steps);
  const double tolerant = simulate_cadence(in, plain, 30 * 8640, 200).distribution.mean_s;
  in.tolerance = {};
  CHECK(tolerant < simulate_cadence(in, plain, 30 * 8640, 200).distribution.mean_s);
  in.local = {7, 1, 5, 1.0};
  CHECK_THROWS_WITH(choose_cadence(in), Catch::Contains("survive a share of 1"));
}

TEST_CASE("with local saves, silent errors and verification go with these and leave the interval as it is") {
  CadenceInput in = cadence_input(read_failures("rsc1"), 384, assumed(10), assumed(30), assumed(60), assumed(4 * 3600));
  in.local = {7, 1, 5, 0.75};
  const std::int64_t steps = choose_cadence(in).interval_steps;
  in.silent = {in.mtbf_s.value, 2};
  const CadencePlan plan = choose_cadence(in);
  CHECK(plan.interval_steps == steps);
  const CadenceRuns runs = simulate_cadence(in, plan, 30 * 8640, 200);
  CHECK(runs.distribution.silent_errors > 50);
  check_half_and_twice_are_worse(runs, 200);
}

TEST_CASE("the interval is a multiple of the local one, the nearest or longer, from the persist time up") {
  CadenceInput in = cadence_input(read_failures("rsc1"), 384, assumed(10), assumed(30), assumed(60), assumed(4 * 3600));
  const double optimum = exact_interval(29, in.mtbf_s.value / 0.25) / 10;  // steps
  for (std::int64_t local : {7, 90, 160, 250, 500, 10'000}) {
    in.local = {local, 1, 5, 0.75};
    const CadencePlan plan = choose_cadence(in);
    const auto nearest = static_cast<std::int64_t>(std::round(optimum / static_cast<double>(local)));
    const std::int64_t best = std::max<std::int64_t>(1, nearest) * local;
    const double longest = longest_interval(29, in.mtbf_s.value / 0.25, static_cast<double>(best) * 10, 1e-3) / 10;
    CHECK(plan.interval_steps % local == 0);
    CHECK(plan.interval_steps >= best);
    CHECK(static_cast<double>(plan.interval_steps) <= std::max(longest, static_cast<double>(best)));
    CHECK(static_cast<double>(plan.interval_steps + local) > longest);
    CHECK_FALSE(plan.persist_bound);
    CHECK_THAT(plan.interval_s.evidence.source,
               Catch::Contains(fmt::format("the {} steps between local saves", local)));
  }
  in.local = {100, 30, 5, 0.75},
  in.persist_s = assumed(2010);  // a save costs no more than a local one: as often as possible
  CHECK(choose_cadence(in).interval_steps == 300);
  CHECK(choose_cadence(in).persist_bound);
  in.persist_s = assumed(60);
  CHECK(choose_cadence(in).interval_steps == 100);
  CHECK_THAT(choose_cadence(in).interval_s.evidence.source, !Catch::Contains("above the exact optimum"));
}

TEST_CASE("slow nodes and maintenance reach the simulated runs, and nothing else") {
  CadenceInput in = cadence_input(read_failures("bloom"), 48, assumed(10), assumed(30), assumed(60), assumed(4 * 3600));
  const CadencePlan plain = choose_cadence(in);
  const RunDistribution before = simulate_cadence(in, plain, 90 * 8640).distribution;
  in.stragglers = read_stragglers("bloom");
  in.maintenance = {10 * 86400, 4 * 3600};
  const CadencePlan plan = choose_cadence(in);
  CHECK(plan.goodput.value == plain.goodput.value);
  const RunDistribution after = simulate_cadence(in, plan, 90 * 8640).distribution;
  CHECK(before.stragglers == 0);
  // 0.0096 a day on 48 nodes, 2 days each: 1.9 % of the time at 1 / 1.064 of the speed.
  const double other = after.bucket_mean_s[static_cast<std::size_t>(Bucket::other)];
  CHECK(other / after.mean_s == Approx(48 * 0.2e-3 * 2 * (1 - 1 / 1.064)).epsilon(0.1));
  CHECK(after.planned_stops == Approx(after.mean_s / (10 * 86400)).epsilon(0.06));
  CHECK(after.mean_s > before.mean_s + other + after.planned_stops * 4 * 3600);
}

TEST_CASE("O14: goodput with tolerated losses is that of simulated runs, of two replicas, too") {
  CadenceInput in = cadence_input(read_failures("rsc1"), 384, assumed(10), assumed(30), assumed(60), assumed(4 * 3600));
  in.spare_confidence = 0.9999;
  for (const auto& [replicas, recover_s] : {std::pair{16, 3600.0}, {4, 4000.0}, {2, 1200.0}}) {
    in.tolerance = {replicas, recover_s, 60};
    const CadencePlan plan = choose_cadence(in);
    const double simulated = simulate_cadence(in, plan, 90 * 8640, 300).distribution.goodput;
    CHECK(std::abs(simulated - plan.goodput.value) < 4e-3);
  }
  CHECK(replicas_lost_mtbf(2, 100, 10) == Approx(100 / (0.1 * std::exp(-0.1))));  // one is away, the other fails
  CHECK(replicas_lost_mtbf(8, 600, 7200) == 600);  // more are away in the mean than may be
  CHECK(replicas_lost_mtbf(400, 100, 0) == 1e15);
  CHECK(replicas_lost_mtbf(400, 1e6, 1) == 1e15);
}

TEST_CASE("an interval that is asked for is taken, to whole steps, local saves and no shorter than a save") {
  CadenceInput in = dbrx();
  in.asked_interval_s = 3604;
  CHECK(choose_cadence(in).interval_steps == 360);
  CHECK(wanted_interval_s(in) == 3604);
  CHECK_THAT(choose_cadence(in).interval_s.evidence.source, Catch::Contains("asked for"));
  CHECK(choose_cadence(in).goodput.value == goodput_at(in, 3600, in.mtbf_s.value));
  in.local = {100, 1, 5, 0.75};
  CHECK(choose_cadence(in).interval_steps == 400);
  in.local = {}, in.persist_s = assumed(5000);
  CHECK(choose_cadence(in).interval_steps == 500);
  CHECK(choose_cadence(in).persist_bound);
  CHECK(wanted_interval_s(in) == 5000);
  in.asked_interval_s = -1;
  CHECK_THROWS_WITH(choose_cadence(in), Catch::Contains("interval: found -1 s"));
}
