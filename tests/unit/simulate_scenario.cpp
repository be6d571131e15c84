// A drill's scenario in simulated months: what each kind of fault costs.
#include "sim/months/simulate_scenario.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "configs/base/number.hpp"
#include "tests/fixtures/scenario_texts.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("a killed rank costs the steps since the save and the phases of a recovery") {
  const Scenario s = scenario_of("events:\n" + kill_of("{domain: rank, index: 1}", "{step: 7}"));
  const SimulatedScenario out = simulate_scenario(s, seconds(), 4);
  REQUIRE(out.faults.size() == 1);
  const SimulatedFault& strike = out.faults[0];
  CHECK(strike.took_effect);
  CHECK(strike.at_s == Approx(2 + 6.5 + 0.125));  // start, steps 1 to 6 and half of 7, one save
  CHECK(strike.restarts == 1);
  CHECK(strike.replay_s == Approx(2.5));  // steps 5, 6 and half of 7
  CHECK(strike.steps_lost == 2);          // step 7 was not done yet
  CHECK(strike.down_s == Approx(0.75));
  CHECK(strike.start_s == Approx(2));
  CHECK(strike.load_s == Approx(0.75));
  CHECK(out.run.wall_s() == Approx(out.undisturbed.wall_s() + strike.total_s()));
}

TEST_CASE("a strike that waits for the save before it loses what was done since") {
  RunScenario slow = seconds();
  slow.persist_s = 0.75;  // beside three quarters of the next step
  for (const bool saved : {false, true}) {
    const SimulatedScenario out = simulate_scenario(
        scenario_of("events:\n" + kill_of("{domain: rank, index: 1}", saved ? "{step: 5, saved: true}" : "{step: 5}")),
        slow, 4);
    CHECK(out.faults.at(0).steps_lost == (saved ? 0 : 4));
    CHECK(out.faults[0].replay_s == Approx(saved ? 0.75 : 4.5));
  }
}

TEST_CASE("a second strike during the recovery from the first, and one that is repeated") {
  const std::string first = kill_of("{domain: rank, index: 1}", "{step: 7}");
  for (const auto& [at, load_s] : {std::pair{"reload", 0.75 / 2}, {"restart", 0.0}}) {
    const Scenario s = scenario_of(
        "events:\n" + first + kill_of("{domain: rank, index: 0}", fmt::format("{{at: {}}}", at), ", generation: 1"));
    const SimulatedScenario out = simulate_scenario(s, seconds(), 4);
    REQUIRE(out.faults.size() == 2);
    CHECK(out.faults[1].took_effect);
    CHECK(out.faults[1].event == 1);
    CHECK(out.faults[1].replay_s == Approx(0).margin(1e-9));  // nothing was done since
    CHECK(out.faults[1].load_s == Approx(load_s).margin(1e-6));
    CHECK(out.faults[0].first_step_s == 1);
    CHECK(out.faults[0].under_way_s == Approx(0.5));
    CHECK(out.faults[1].first_step_s == 0);  // the same one
    CHECK(out.run.failures == 2);
  }
  const Scenario repeated = scenario_of("events:\n" + kill_of("{domain: rank, index: 1}", "{step: 7}", ", repeats: 3"));
  const SimulatedScenario out = simulate_scenario(repeated, seconds(), 4);
  REQUIRE(out.faults.size() == 3);
  for (const SimulatedFault& strike : out.faults) {
    CHECK(strike.restarts == 1);
    CHECK(strike.first_step_s == 1);
    CHECK(strike.replay_s == Approx(2.5));
  }
}

TEST_CASE("a lost node is replaced by a spare, or the run goes on with fewer") {
  const std::string lost = "events:\n" + kill_of("{domain: node, index: 0}", "{step: 6}");
  const SimulatedScenario spare = simulate_scenario(
      scenario_of("nodes: {ranks: 2, spares: 1}\npolicy: {on_loss: [spare, restart]}\n" + lost), seconds(), 4);
  CHECK(spare.run.finished);
  CHECK(spare.run.bucket_s(Bucket::other) == 0);
  const SimulatedScenario shrunk =
      simulate_scenario(scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [shrink]}\n" + lost), seconds(), 4);
  CHECK(shrunk.run.finished);
  CHECK(shrunk.run.bucket_s(Bucket::other) == Approx(16));  // steps 5 to 20 take twice as long
  // One spare for two losses: after the second all nodes start again.
  const SimulatedScenario twice =
      simulate_scenario(scenario_of("nodes: {ranks: 2, spares: 1}\npolicy: {on_loss: [spare, restart]}\nevents:\n" +
                                    kill_of("{domain: node, index: 0}", "{time: 5s}") +
                                    kill_of("{domain: node, index: 1}", "{time: 15s}")),
                        seconds(), 4);
  CHECK(twice.run.finished);
  CHECK(twice.run.failures == 2);
  CHECK(twice.faults[1].down_s == Approx(0.75));
  const SimulatedScenario waits =
      simulate_scenario(scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [wait]}\nevents:\n" +
                                    kill_of("{domain: node, index: 0}", "{step: 6}", ", lasts: 100s")),
                        seconds(), 4);
  CHECK(waits.faults[0].down_s == Approx(100));
}

TEST_CASE("a lost replica and a disk that is full stop every rank, and no node is gone") {
  for (const char* what : {"{kind: kill}", "{kind: disk_full, after: 1kB}"}) {
    const bool kill = std::string(what) == "{kind: kill}";
    const SimulatedScenario out = simulate_scenario(
        scenario_of(fmt::format("policy: {{on_loss: [wait]}}\nevents:\n  - {{who: {}, when: {{step: 7}}, what: {}}}\n",
                                kill ? "{domain: replica, index: 0}" : "{domain: rank, index: 1}", what)),
        seconds(), 4);
    REQUIRE(out.faults.size() == 1);
    CHECK(out.faults[0].restarts == 1);
    CHECK(out.faults[0].replay_s == Approx(kill ? 2.5 : 6.5));  // the save of step 4 failed
    CHECK(out.faults[0].down_s == Approx(0.75));
    CHECK(out.run.without_spare == 0);
  }
}

TEST_CASE("announced maintenance loses no step") {
  const Scenario s = scenario_of(
      "events:\n  - {who: {domain: node, index: 0}, when: {step: 7}, what: {kind: maintenance}, lasts: 30s}\n");
  const SimulatedScenario out = simulate_scenario(s, seconds(), 4);
  CHECK(out.faults.at(0).steps_lost == 0);
  CHECK(out.faults[0].planned_s == Approx(30.125));  // with the save
  CHECK(out.run.wall_s() == Approx(out.undisturbed.wall_s() + out.faults[0].total_s()));
}

TEST_CASE("O17: going on without a replica loses no step, and whole microbatches are dealt out anew until it is back") {
  for (const std::int64_t microbatches : {1, 2, 4, 8}) {
    RunScenario s = seconds();
    s.steps = 40, s.tolerance = {.replicas = 4, .microbatches = microbatches};
    const double factor = std::ceil(4.0 * as_double(microbatches) / 3) / as_double(microbatches);
    const Scenario lost = scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [without_replica]}\nevents:\n" +
                                      kill_of("{domain: node, index: 1}", "{step: 7}", ", lasts: 12s"));
    const SimulatedScenario out = simulate_scenario(lost, s, 8);
    REQUIRE(out.faults.size() == 1);
    const SimulatedFault& strike = out.faults[0];
    INFO("microbatches " << microbatches);
    CHECK(out.run.finished);
    CHECK(strike.restarts == 1);
    CHECK(strike.steps_lost == 0);
    CHECK(strike.load_s == 0);
    CHECK(strike.down_s == Approx(0.75));  // detected, decided
    CHECK(strike.start_s == 0);
    CHECK(strike.replay_s == Approx(0.5));  // half of step 7
    // Its node is away for 12 s from the strike, then it starts and loads in 2.75 s. The others train but for the first
    // 0.75 s, and those of their steps take longer. One or two saves lie between them.
    const double slow_steps = strike.slower_s / (factor - 1);
    CHECK(slow_steps == Approx(std::round(slow_steps)));
    CHECK(slow_steps == Approx((12 + 2.75 - 0.75 - 0.25) / factor).margin(1));
    CHECK(out.run.wall_s() == Approx(out.undisturbed.wall_s() + strike.total_s()));
  }
}

TEST_CASE("a replica whose node lives is back after its start, and one that is lost for good is not") {
  RunScenario s = seconds();
  s.tolerance = {.replicas = 2, .microbatches = 2};
  const auto slower_s = [&](const std::string& who) {
    const SimulatedScenario out =
        simulate_scenario(scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [without_replica, restart]}\nevents:\n" +
                                      kill_of(who, "{step: 7}")),
                          s, 4);
    CHECK(out.faults.at(0).steps_lost == 0);
    CHECK(out.run.finished);
    return out.faults[0].slower_s;
  };
  CHECK(slower_s("{domain: node, index: 1}") == Approx(14));  // steps 7 to 20 take 2 s
  CHECK(slower_s("{domain: replica, index: 0}") == Approx(14));
  CHECK(slower_s("{domain: rank, index: 1}") == Approx(2));  // 2.75 s from when the others go on: two of their steps
}

TEST_CASE("who goes on without a replica restarts after a second loss, a hang, and where there is none") {
  RunScenario s = seconds();
  s.tolerance = {.replicas = 2, .microbatches = 2};
  const std::string policy = "nodes: {ranks: 2}\npolicy: {on_loss: [without_replica, restart]}\nevents:\n";
  const SimulatedScenario twice =
      simulate_scenario(scenario_of(policy + kill_of("{domain: node, index: 1}", "{time: 8.5s}") +
                                    kill_of("{domain: node, index: 0}", "{time: 20.0s}")),
                        s, 4);
  REQUIRE(twice.faults.size() == 2);
  CHECK(twice.faults[0].steps_lost == 0);
  CHECK(twice.faults[1].load_s == Approx(0.75));
  CHECK(twice.faults[1].down_s == Approx(0.75));
  CHECK(twice.run.finished);
  const SimulatedScenario hang = simulate_scenario(
      scenario_of(policy + "  - {who: {domain: rank, index: 1}, when: {step: 7}, what: {kind: hang, of: process}, "
                           "detect: {by: watchdog, within: 10s}}\n"),
      s, 4);
  CHECK(hang.faults.at(0).down_s == Approx(10.25));
  CHECK(hang.faults[0].load_s == Approx(0.75));
  CHECK(hang.faults[0].replay_s == Approx(2.5));
  s.tolerance.replicas = 1;
  const Scenario alone = scenario_of(policy + kill_of("{domain: node, index: 1}", "{step: 7}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(alone, s, 4); }), Catch::Contains("without_replica with 1 replicas"));
}

TEST_CASE("who cannot go on without a replica and does not restart waits for its nodes, and then starts once") {
  RunScenario s = seconds();
  s.tolerance = {.replicas = 2, .microbatches = 2};
  const SimulatedScenario out =
      simulate_scenario(scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [without_replica, wait]}\nevents:\n" +
                                    kill_of("{domain: node, index: 1}", "{time: 8.5s}", ", lasts: 30s") +
                                    kill_of("{domain: node, index: 0}", "{time: 12.0s}", ", lasts: 10s")),
                        s, 4);
  CHECK(out.run.finished);
  // From the second strike until node 1 is back; start and load follow, and then both replicas are there.
  CHECK(out.run.bucket_s(Bucket::infrastructure_recovery) == Approx(0.75 + 38.5 - 12));
  CHECK(out.run.bucket_s(Bucket::accelerator_init) == Approx(2 + 2));
  CHECK(out.run.bucket_s(Bucket::checkpoint_restore) == Approx(0.75));
}

TEST_CASE("a damaged file costs a save where that save is loaded") {
  RunScenario run = seconds();
  run.blocking_s = 0;
  const auto replayed_s = [&](const std::string& how, const std::string& kill) {
    const SimulatedScenario out = simulate_scenario(
        scenario_of("events:\n  - {who: {domain: storage}, when: {step: 10}, what: {kind: damage, how: " + how +
                    "}}\n" + kill),
        run, 4);
    CHECK(out.faults.at(0).total_s() == 0);
    CHECK(out.run.finished);
    if (out.faults.size() == 1) return 0.0;
    CHECK(out.run.wall_s() == Approx(out.undisturbed.wall_s() + out.faults[1].total_s()));
    return out.faults[1].replay_s;
  };
  const std::string rank = "{domain: rank, index: 1}";
  CHECK(replayed_s("flip_bit", "") == 0);
  CHECK(replayed_s("flip_bit", kill_of(rank, "{step: 10}")) == Approx(5.5));      // from step 4, not 8
  CHECK(replayed_s("stale_latest", kill_of(rank, "{step: 10}")) == Approx(1.5));  // is found all the same
  CHECK(replayed_s("flip_bit", kill_of(rank, "{step: 14}")) == Approx(1.5));      // step 12 is saved since
  // A recovery from local copies does not need it, the one after that does.
  run.local = {.interval_steps = 2, .blocking_s = 0, .reload_s = 0.25, .survival = 1};
  for (const bool survives : {true, false}) {
    const SimulatedScenario twice = simulate_scenario(
        scenario_of("events:\n  - {who: {domain: storage}, when: {step: 10}, what: {kind: damage, how: flip_bit}}\n" +
                    kill_of(rank, "{step: 11}") + "  - {who: " + rank + ", when: {time: 17.0s}, what: {kind: kill" +
                    (survives ? "" : ", takes: [local_copies]") + "}}\n"),
        run, 4);
    REQUIRE(twice.faults.size() == 3);
    CHECK(twice.faults[1].replay_s == Approx(0.5));                   // from the copy of step 10
    CHECK(twice.faults[2].replay_s == Approx(survives ? 1.5 : 7.5));  // the same, or from step 4 instead of 8
  }
  run.local = {};
  // Nothing else was saved: from the start.
  const SimulatedScenario early = simulate_scenario(
      scenario_of("events:\n  - {who: {domain: storage}, when: {step: 6}, what: {kind: damage, how: truncate}}\n" +
                  kill_of(rank, "{step: 6}")),
      seconds(), 4);
  CHECK(early.faults.at(1).replay_s == Approx(5.5));
}

TEST_CASE("a corrupted number is found at the next save where state is verified, else lived through") {
  const auto corrupt = [](const std::string& tensor) {
    return scenario_of("events:\n  - {who: {domain: rank, index: 1}, when: {step: 6}, what: {kind: corrupt, tensor: " +
                       tensor + "}}\n");
  };
  RunScenario s = seconds();
  const SimulatedScenario lived = simulate_scenario(corrupt("weight, layer: 0, element: 5, bit: 3"), s, 4);
  CHECK(lived.faults.at(0).total_s() == 0);
  CHECK(lived.run.wall_ns == lived.undisturbed.wall_ns);
  s.silent.verified = true, s.silent.verify_s = 0.0625;
  const SimulatedScenario found = simulate_scenario(corrupt("weight, layer: 0, element: 5, bit: 3"), s, 4);
  const SimulatedFault& strike = found.faults.at(0);
  CHECK(strike.restarts == 1);
  CHECK(strike.steps_lost == 4);  // 5 to 8, verified before the save of step 8
  CHECK(strike.down_s == Approx(0.25));
  CHECK(strike.load_s == Approx(0.75));
  CHECK(found.run.silent_errors == 1);
  s.silent = {};
  const SimulatedScenario infinite = simulate_scenario(corrupt("gradient, layer: 0, element: 5, bit: 30"), s, 4);
  CHECK(infinite.faults.at(0).replay_s == Approx(1.5));  // the norm is not finite, and the step is not taken
}
