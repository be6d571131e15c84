// What strikes in simulated months: laws of failure presets, events of scenarios, and a drill's scenario replayed.
#include "sim/months/fault_laws.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <set>

#include "configs/spec/support/number.hpp"
#include "sim/months/simulate_scenario.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::string kRecovery =
    "recovery: {detect: {time: 222s, mean: 2334s, evidence: published, source: a}, reschedule: {time: 1m, evidence: "
    "assumed, source: a}, restart: {time: 1m, evidence: assumed, source: a}, reload: {time: 1m, evidence: assumed, "
    "source: a}}\n";

FailurePreset preset_of(const std::string& classes) {
  const TempDirectory folder;
  std::ofstream(folder.path() / "p.yaml") << "name: p\ntitle: t\n" << classes << kRecovery;
  return read_failures((folder.path() / "p.yaml").string());
}

std::string class_of(const std::string& more) {
  return "failures: [{class: a, per_1000_node_days: 10, evidence: assumed, source: a" + more + "}]\n";
}

Scenario scenario_of(const std::string& text) {
  const TempDirectory folder;
  std::ofstream(folder.path() / "s.yaml") << "name: s\n" << text;
  return read_scenario_file(folder.path() / "s.yaml");
}

std::string kill_of(const std::string& who, const std::string& when, const std::string& more = "") {
  return "  - {who: " + who + ", when: " + when + ", what: {kind: kill}" + more + "}\n";
}

/// A second a step, saved after every fourth.
RunScenario seconds() {
  RunScenario s;
  s.steps = 20, s.step_s = 1, s.interval_steps = 4, s.blocking_s = 0.125;
  s.detect_s = 0.5, s.reschedule_s = 0.25, s.restart_s = 2, s.reload_s = 0.75;
  return s;
}

std::int64_t strikes_within(const StrikeLaw& law, const EntityTree& tree, double seconds) {
  FaultTrace trace(tree, {law}, {}, 9);
  std::int64_t n = 0;
  while (const TraceEvent* e = trace.event(static_cast<std::size_t>(n))) {
    if (static_cast<double>(e->at) >= seconds * 1e9) break;
    ++n;
  }
  return n;
}

}  // namespace

TEST_CASE("Llama 3's classes are one law of all failures, and its planned stops one of the job") {
  const EntityTree tree{.nodes = 2048};
  const FaultLaws laws = preset_laws(read_failures("llama3"), tree);
  REQUIRE(laws.laws.size() == 2);
  CHECK(laws.laws[0].mean_s == Approx(2048 * 54 * kDay_s / 419));
  CHECK(laws.laws[1].what == StrikeLaw::Strikes::planned);
  CHECK(laws.laws[1].mean_s == Approx(54 * kDay_s / 47));
  CHECK(preset_laws(read_failures("llama3"), tree, 2).laws[0].mean_s == Approx(2 * laws.laws[0].mean_s));
}

TEST_CASE("events per 1000 node-days are as many of every domain") {
  const EntityTree tree{.nodes = 64, .ranks_per_node = 8, .nodes_per_rack = 4, .nodes_per_leaf = 16, .rails = 8};
  const double seconds = 1000 * kDay_s;  // 10 per 1000 node-days on 64 nodes: 640 events, standard deviation 25
  using enum FaultDomain;
  for (const FaultDomain domain : {rank, node, rack, leaf, rail, all}) {
    const StrikeLaw law{.domain = domain, .mean_s = entity_mean_s(tree, domain, 10)};
    INFO(to_string(domain));
    CHECK(static_cast<double>(strikes_within(law, tree, seconds)) == Approx(640).margin(4 * 25.3));
  }
  // Parts that are not whole are struck by what they have: 200 nodes are 6 leaves of 32 and a quarter of one; 5 events
  // per 1000 node-days on 8 of 32 nodes under a leaf are 40 in 1000 days, on the 200 nodes 1000.
  for (const std::int64_t nodes : {std::int64_t{8}, std::int64_t{200}}) {
    const EntityTree part{.nodes = nodes, .nodes_per_rack = 3, .nodes_per_leaf = 32};
    for (const FaultDomain domain : {rack, leaf}) {
      const StrikeLaw law{.domain = domain, .mean_s = entity_mean_s(part, domain, 5)};
      const double expected = 5 * as_double(nodes);
      CHECK(static_cast<double>(strikes_within(law, part, seconds)) ==
            Approx(expected).margin(4 * std::sqrt(expected)));
    }
  }
  CHECK(entity_mean_s(tree, node, 0) == 0);
  CHECK_THAT(usage_error([] { entity_mean_s({.nodes = 8}, FaultDomain::leaf, 1); }), Catch::Contains("leaf"));
}

TEST_CASE("a preset's classes say domain, shape and bad nodes, and a recovery is lognormal where it has a mean") {
  const EntityTree tree{.nodes = 100, .nodes_per_rack = 4};
  const FaultLaws laws = preset_laws(preset_of(class_of(", domain: rack, shape: 0.8")), tree);
  CHECK(laws.laws.at(0).domain == FaultDomain::rack);
  CHECK(laws.laws[0].shape == 0.8);
  CHECK(laws.laws[0].mean_s == Approx(1000 * kDay_s / (10 * 4)));
  const FailurePreset bad = preset_of(class_of(", bad_nodes: {share: 0.15, factor: 6}"));
  CHECK(preset_laws(bad, tree).laws.at(0).bad_share == 0.15);
  CHECK(preset_laws(bad, tree).laws[0].bad_factor == 6);
  CHECK(bad.recovery.detect_s.value == 2334);
  CHECK(bad.recovery.detect_s.sigma() == Approx(2.17).margin(5e-3));
  CHECK(bad.recovery.restart_s.sigma() == 0);
}

TEST_CASE("a preset with laws that make no sense is refused") {
  const auto refused = [](const std::string& more, const char* what) {
    CHECK_THAT(usage_error([&] { preset_of(class_of(more)); }), Catch::Contains(what));
  };
  refused(", domain: galaxy", "galaxy");
  refused(", domain: replica", "replica");
  refused(", shape: 0", "shape");
  refused(", domain: rack, bad_nodes: {share: 0.1, factor: 2}", "needs domain node");
  refused(", bad_nodes: {share: 1.5, factor: 2}", "share");
  refused(", bad_nodes: {share: 0.5, factor: 0.5}", "factor");
  refused(", duration: {time: 1m, evidence: assumed, source: a}", "duration");  // of planned stops alone
  const std::string less = "recovery: {detect: {time: 2m, mean: 1m, evidence: assumed, source: a}";
  CHECK_THAT(usage_error([&] {
               const TempDirectory folder;
               std::ofstream(folder.path() / "p.yaml") << "name: p\ntitle: t\n" << class_of("") << less << "}\n";
               read_failures((folder.path() / "p.yaml").string());
             }),
             Catch::Contains("needs a mean above the median"));
}

TEST_CASE("a killed rank costs the steps since the save and the phases of a recovery") {
  const Scenario s = scenario_of("events:\n" + kill_of("{domain: rank, index: 1}", "{step: 7}"));
  const SimulatedScenario out = simulate_scenario(s, seconds(), 4);
  REQUIRE(out.strikes.size() == 1);
  const SimulatedStrike& strike = out.strikes[0];
  CHECK(strike.struck);
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
    CHECK(out.strikes.at(0).steps_lost == (saved ? 0 : 4));
    CHECK(out.strikes[0].replay_s == Approx(saved ? 0.75 : 4.5));
  }
}

TEST_CASE("a second strike during the recovery from the first, and one that is repeated") {
  const std::string first = kill_of("{domain: rank, index: 1}", "{step: 7}");
  for (const auto& [at, load_s] : {std::pair{"reload", 0.75 / 2}, {"restart", 0.0}}) {
    const Scenario s = scenario_of(
        "events:\n" + first + kill_of("{domain: rank, index: 0}", fmt::format("{{at: {}}}", at), ", generation: 1"));
    const SimulatedScenario out = simulate_scenario(s, seconds(), 4);
    REQUIRE(out.strikes.size() == 2);
    CHECK(out.strikes[1].struck);
    CHECK(out.strikes[1].event == 1);
    CHECK(out.strikes[1].replay_s == Approx(0).margin(1e-9));  // nothing was done since
    CHECK(out.strikes[1].load_s == Approx(load_s).margin(1e-6));
    CHECK(out.run.failures == 2);
  }
  const Scenario repeated = scenario_of("events:\n" + kill_of("{domain: rank, index: 1}", "{step: 7}", ", repeats: 3"));
  const SimulatedScenario out = simulate_scenario(repeated, seconds(), 4);
  REQUIRE(out.strikes.size() == 3);
  for (const SimulatedStrike& strike : out.strikes) {
    CHECK(strike.restarts == 1);
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
  CHECK(twice.strikes[1].down_s == Approx(0.75));
  const SimulatedScenario waits =
      simulate_scenario(scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [wait]}\nevents:\n" +
                                    kill_of("{domain: node, index: 0}", "{step: 6}", ", lasts: 100s")),
                        seconds(), 4);
  CHECK(waits.strikes[0].down_s == Approx(100));
}

TEST_CASE("a lost replica and a disk that is full stop every rank, and no node is gone") {
  for (const char* what : {"{kind: kill}", "{kind: disk_full, after: 1kB}"}) {
    const bool kill = std::string(what) == "{kind: kill}";
    const SimulatedScenario out = simulate_scenario(
        scenario_of(fmt::format("policy: {{on_loss: [wait]}}\nevents:\n  - {{who: {}, when: {{step: 7}}, what: {}}}\n",
                                kill ? "{domain: replica, index: 0}" : "{domain: rank, index: 1}", what)),
        seconds(), 4);
    REQUIRE(out.strikes.size() == 1);
    CHECK(out.strikes[0].restarts == 1);
    CHECK(out.strikes[0].replay_s == Approx(kill ? 2.5 : 6.5));  // the save of step 4 failed
    CHECK(out.strikes[0].down_s == Approx(0.75));
    CHECK(out.run.without_spare == 0);
  }
}

TEST_CASE("announced maintenance loses no step") {
  const Scenario s = scenario_of(
      "events:\n  - {who: {domain: node, index: 0}, when: {step: 7}, what: {kind: maintenance}, lasts: 30s}\n");
  const SimulatedScenario out = simulate_scenario(s, seconds(), 4);
  CHECK(out.strikes.at(0).steps_lost == 0);
  CHECK(out.strikes[0].planned_s == Approx(30.125));  // with the save
  CHECK(out.run.wall_s() == Approx(out.undisturbed.wall_s() + out.strikes[0].total_s()));
}

TEST_CASE("events of a study's scenario join the laws: rates, shares, times and trace files") {
  const TempDirectory folder;
  std::ofstream(folder.path() / "trace.csv") << "time_s,index,lasts_s\n3600,4,86400\n7200,5,0\n";
  std::ofstream(folder.path() / "s.yaml")
      << "name: s\nevents:\n"
      << kill_of("{domain: rack}", "{per_1000_node_days: 0.05, shape: 0.78}")
      << kill_of("{share: 0.05, of: node}", "{per_1000_node_days: 1}")
      << kill_of("{domain: leaf, index: 1}", "{time: 3h}") << kill_of("{domain: node}", "{trace: trace.csv}");
  const EntityTree tree{.nodes = 64, .nodes_per_rack = 4, .nodes_per_leaf = 16};
  FaultLaws out;
  add_scenario(read_scenario_file(folder.path() / "s.yaml"), seconds(), tree, out);
  REQUIRE(out.laws.size() == 5);
  CHECK(out.laws[0].shape == 0.78);
  CHECK(out.laws[0].mean_s == Approx(1000 * kDay_s / (0.05 * 4)));
  REQUIRE(out.given.size() == 3);
  CHECK(out.given[0].at_s == 3 * 3600);
  CHECK(out.given[0].entity == 1);
  CHECK(out.given[1].entity == 4);
  CHECK(out.laws[3].lasts_s == 86400);
  CHECK(out.laws[4].lasts_s == 0);
  // A twentieth of the nodes has all of its events: 64 in 1000 days, standard deviation 8, and of the share itself.
  std::set<std::int32_t> struck;
  FaultTrace trace(tree, {out.laws[1]}, {}, 2);
  for (std::size_t i = 0; trace.event(i) && trace.event(i)->at < 1000LL * 86400 * 1'000'000'000; ++i)
    struck.insert(trace.event(i)->entity);
  CHECK(struck.size() >= 1);
  CHECK(struck.size() <= 10);
}

TEST_CASE("scenarios that months do not know are refused") {
  const auto refused = [](const std::string& event, const char* what) {
    const Scenario s = scenario_of("events:\n" + event);
    FaultLaws laws;
    CHECK_THAT(usage_error([&] { add_scenario(s, seconds(), {.nodes = 4}, laws); }), Catch::Contains(what));
  };
  refused("  - {who: {domain: storage}, when: {step: 5}, what: {kind: slow, factor: 2}}\n",
          "found slow of the storage");
  refused(kill_of("{domain: node}", "{trace: nowhere.csv}"), "nowhere.csv");
  refused(kill_of("{domain: rack}", "{per_1000_node_days: 1}"), "does not describe");
  const TempDirectory folder;
  std::ofstream(folder.path() / "trace.csv") << "time_s,index,lasts_s\n3600,4\n";
  std::ofstream(folder.path() / "s.yaml") << "name: s\nevents:\n" << kill_of("{domain: node}", "{trace: trace.csv}");
  FaultLaws laws;
  CHECK_THAT(
      usage_error([&] { add_scenario(read_scenario_file(folder.path() / "s.yaml"), seconds(), {.nodes = 8}, laws); }),
      Catch::Contains("trace.csv:2: found '3600,4'"));
  const Scenario rate = scenario_of("events:\n" + kill_of("{domain: node}", "{per_1000_node_days: 1}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(rate, seconds(), 4); }), Catch::Contains("at a rate"));
  const Scenario odd = scenario_of("nodes: {ranks: 3}\nevents:\n" + kill_of("{domain: node, index: 0}", "{step: 5}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(odd, seconds(), 4); }), Catch::Contains("4 ranks on nodes of 3"));
  const Scenario beyond = scenario_of("events:\n" + kill_of("{domain: rank, index: 9}", "{step: 5}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(beyond, seconds(), 4); }), Catch::Contains("found rank 9"));
}

TEST_CASE("O17: going on without a replica loses no step, and whole microbatches are dealt out anew until it is back") {
  for (const std::int64_t microbatches : {1, 2, 4, 8}) {
    RunScenario s = seconds();
    s.steps = 40, s.tolerance = {.replicas = 4, .microbatches = microbatches};
    const double factor = std::ceil(4.0 * as_double(microbatches) / 3) / as_double(microbatches);
    const Scenario lost = scenario_of("nodes: {ranks: 2}\npolicy: {on_loss: [without_replica]}\nevents:\n" +
                                      kill_of("{domain: node, index: 1}", "{step: 7}", ", lasts: 12s"));
    const SimulatedScenario out = simulate_scenario(lost, s, 8);
    REQUIRE(out.strikes.size() == 1);
    const SimulatedStrike& strike = out.strikes[0];
    INFO("microbatches " << microbatches);
    CHECK(out.run.finished);
    CHECK(strike.restarts == 1);
    CHECK(strike.steps_lost == 0);
    CHECK(strike.load_s == 0);
    CHECK(strike.down_s == Approx(0.75));  // detected, decided
    CHECK(strike.start_s == 0);
    CHECK(strike.replay_s == Approx(0.5));  // half of step 7
    // Away for 12 s from the strike, 0.75 of them without a step: those that begin in the other 11.25 take longer.
    // One or two saves lie between them.
    const double slow_steps = strike.slower_s / (factor - 1);
    CHECK(slow_steps == Approx(std::round(slow_steps)));
    CHECK(slow_steps == Approx((12 - 0.75 - 0.25) / factor).margin(1));
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
    CHECK(out.strikes.at(0).steps_lost == 0);
    CHECK(out.run.finished);
    return out.strikes[0].slower_s;
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
  REQUIRE(twice.strikes.size() == 2);
  CHECK(twice.strikes[0].steps_lost == 0);
  CHECK(twice.strikes[1].load_s == Approx(0.75));
  CHECK(twice.strikes[1].down_s == Approx(0.75));
  CHECK(twice.run.finished);
  const SimulatedScenario hang = simulate_scenario(
      scenario_of(policy + "  - {who: {domain: rank, index: 1}, when: {step: 7}, what: {kind: hang, of: process}, "
                           "detect: {by: watchdog, within: 10s}}\n"),
      s, 4);
  CHECK(hang.strikes.at(0).down_s == Approx(10.25));
  CHECK(hang.strikes[0].load_s == Approx(0.75));
  CHECK(hang.strikes[0].replay_s == Approx(2.5));
  s.tolerance.replicas = 1;
  const Scenario alone = scenario_of(policy + kill_of("{domain: node, index: 1}", "{step: 7}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(alone, s, 4); }), Catch::Contains("without_replica with 1 replicas"));
}

TEST_CASE("a damaged file costs a save where that save is loaded") {
  RunScenario run = seconds();
  run.blocking_s = 0;
  const auto replayed_s = [&](const std::string& how, const std::string& kill) {
    const SimulatedScenario out = simulate_scenario(
        scenario_of("events:\n  - {who: {domain: storage}, when: {step: 10}, what: {kind: damage, how: " + how +
                    "}}\n" + kill),
        run, 4);
    CHECK(out.strikes.at(0).total_s() == 0);
    CHECK(out.run.finished);
    if (out.strikes.size() == 1) return 0.0;
    CHECK(out.run.wall_s() == Approx(out.undisturbed.wall_s() + out.strikes[1].total_s()));
    return out.strikes[1].replay_s;
  };
  const std::string rank = "{domain: rank, index: 1}";
  CHECK(replayed_s("flip_bit", "") == 0);
  CHECK(replayed_s("flip_bit", kill_of(rank, "{step: 10}")) == Approx(5.5));      // from step 4, not 8
  CHECK(replayed_s("stale_latest", kill_of(rank, "{step: 10}")) == Approx(1.5));  // is found all the same
  CHECK(replayed_s("flip_bit", kill_of(rank, "{step: 14}")) == Approx(1.5));      // step 12 is saved since
  // Nothing else was saved: from the start.
  const SimulatedScenario early = simulate_scenario(
      scenario_of("events:\n  - {who: {domain: storage}, when: {step: 6}, what: {kind: damage, how: truncate}}\n" +
                  kill_of(rank, "{step: 6}")),
      seconds(), 4);
  CHECK(early.strikes.at(1).replay_s == Approx(5.5));
}

TEST_CASE("a corrupted number is found at the next save where state is verified, else lived through") {
  const auto corrupt = [](const std::string& tensor) {
    return scenario_of("events:\n  - {who: {domain: rank, index: 1}, when: {step: 6}, what: {kind: corrupt, tensor: " +
                       tensor + "}}\n");
  };
  RunScenario s = seconds();
  const SimulatedScenario lived = simulate_scenario(corrupt("weight, layer: 0, element: 5, bit: 3"), s, 4);
  CHECK(lived.strikes.at(0).total_s() == 0);
  CHECK(lived.run.wall_ns == lived.undisturbed.wall_ns);
  s.silent.verified = true, s.silent.verify_s = 0.0625;
  const SimulatedScenario found = simulate_scenario(corrupt("weight, layer: 0, element: 5, bit: 3"), s, 4);
  const SimulatedStrike& strike = found.strikes.at(0);
  CHECK(strike.restarts == 1);
  CHECK(strike.steps_lost == 4);  // 5 to 8, verified before the save of step 8
  CHECK(strike.down_s == Approx(0.25));
  CHECK(strike.load_s == Approx(0.75));
  CHECK(found.run.silent_errors == 1);
  s.silent = {};
  const SimulatedScenario infinite = simulate_scenario(corrupt("gradient, layer: 0, element: 5, bit: 30"), s, 4);
  CHECK(infinite.strikes.at(0).replay_s == Approx(1.5));  // the norm is not finite, and the step is not taken
}

TEST_CASE("damage and corruption in a study's faults: by the rate of the storage and of ranks") {
  const EntityTree tree{.nodes = 8, .ranks_per_node = 8};
  FaultLaws out;
  add_scenario(
      scenario_of("events:\n  - {who: {domain: storage}, when: {time: 1h}, what: {kind: damage, how: remove}}\n"
                  "  - {who: {domain: rank}, when: {per_1000_node_days: 2}, what: {kind: corrupt, tensor: "
                  "weight, layer: 0, element: 0, bit: 9}}\n"),
      seconds(), tree, out);
  REQUIRE(out.laws.size() == 2);
  CHECK(out.laws[0].what == StrikeLaw::Strikes::damage);
  CHECK(out.laws[0].spoils_save);
  CHECK(out.given.at(0).at_s == 3600);
  CHECK(out.laws[1].what == StrikeLaw::Strikes::silent);
  CHECK(out.laws[1].mean_s == Approx(1000 * kDay_s / (2 / 8.0)));
}
