// Scenario files: what they say, and what is refused before anything starts.
#include "configs/files/scenario.hpp"

#include <catch2/catch.hpp>
#include <csignal>

#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using wt::test::TempDirectory;

namespace {

Scenario read(const std::string& text) {
  const TempDirectory folder;
  test::write_bytes(folder / "s.yaml", text);
  return read_scenario_file(folder / "s.yaml");
}

Scenario with_event(const std::string& event, const std::string& head = "") {
  return read("name: s\nrun: some-run\n" + head + "events:\n  - {" + event + "}\n");
}

const std::string kRank1 = "who: {domain: rank, index: 1}, ", kStep2 = "when: {step: 2}, ",
                  kKill = "what: {kind: kill}";

void refused(const std::string& event, const std::string& why, const std::string& head = "") {
  INFO(event << head);
  CHECK_THROWS_WITH(with_event(event, head), Catch::Contains(why));
}

RunSpec run_of(std::int64_t replicate, std::int64_t shard, std::int64_t steps, std::int64_t save_interval) {
  RunSpec run;
  run.name = "some-run";
  run.model.layers = 2;
  run.layout.replicate = replicate, run.layout.shard = shard;
  run.steps = steps, run.save_interval = save_interval;
  return run;
}

void impossible(const std::string& event, const std::string& why, const std::string& head = "") {
  INFO(event << head);
  CHECK_THROWS_WITH(check_drill(with_event(event, head), run_of(2, 2, 6, 4),
                                {"mb0.L1.experts.bwd", "mb0.L1.dispatch.fwd", "optimizer"}, {"mb0.L1.dispatch.fwd"}),
                    Catch::Contains(why));
}

}  // namespace

TEST_CASE("a scenario is read with all it says") {
  const Scenario s = read(R"(name: rack-lost
run: some-run
nodes: {ranks: 2, per_rack: 1, spares: 1}
policy: {on_loss: [spare, shrink, restart], min_replicas: 2, retries_same_place: 0, max_restarts: 5}
events:
  - who: {domain: rack, index: 1}
    when: {step: 7, at: mb0.L1.dispatch.fwd, phase: issued}
    what: {kind: kill, takes: [local_copies]}
    lasts: 30s
    cause: "published: a paper"
    detect: {by: exit, within: 1s}
  - who: {domain: rank, index: 0}
    when: {step: 5, at: optimizer}
    generation: 1
    repeats: 2
    what: {kind: corrupt, tensor: moment, layer: 1, element: 5, bit: 30}
  - who: {domain: rank, index: 0}
    when: {step: 8, at: checkpoint}
    what: {kind: disk_full, after: 4kB}
  - {who: {domain: all}, when: {step: 3}, what: {kind: maintenance, signal: USR1, notice: 5s}}
  - {who: {share: 0.05, of: node}, when: {per_1000_node_days: 2, shape: 0.78}, what: {kind: kill}}
expect: {state: layouts, restarts: 2, resumed_after: [4, 8], level: peer, excluded: [2, 3], within: 30s}
)");
  REQUIRE(s.events.size() == 5);
  const FaultEvent& rack = s.events[0];
  CHECK((rack.who.domain == FaultDomain::rack && rack.who.index == 1));
  CHECK((rack.when.step == 7 && rack.when.op == "mb0.L1.dispatch.fwd" && rack.when.phase == FaultTime::Phase::issued));
  CHECK((rack.what.kind == FaultKind::kill && rack.what.takes_local_copies));
  CHECK((rack.lasts_s == 30 && rack.detected_by == DetectedBy::exit && rack.detected_within_s == 1));
  CHECK((rack.cause && rack.cause->kind == Evidence::published && rack.cause->source == "a paper"));
  const FaultEvent& bit = s.events[1];
  CHECK((bit.generation == 1 && bit.repeats == 2 && bit.what.tensor == TensorKind::moment && bit.what.bit == 30));
  CHECK((bit.what.layer == 1 && bit.what.element == 5 && !bit.lasts_s));
  CHECK((s.events[2].when.place == FaultTime::Place::checkpoint && s.events[2].when.after == 0.5));
  CHECK(s.events[2].what.bytes == 4000);
  CHECK((s.events[3].what.signal == SIGUSR1 && s.events[3].what.notice_s == 5));
  CHECK(
      (s.events[4].who.share == 0.05 && s.events[4].when.by == FaultTime::By::rate && s.events[4].when.shape == 0.78));
  CHECK(s.policy.on_loss == std::vector{Recovery::spare, Recovery::shrink, Recovery::restart});
  CHECK((s.policy.min_replicas == 2 && s.policy.retries_same_place == 0 && s.policy.max_restarts == 5));
  CHECK((s.nodes.ranks == 2 && s.nodes.per_rack == 1 && s.nodes.spares == 1));
  CHECK((s.expect.state == Expectation::State::layouts && s.expect.restarts == 2 &&
         s.expect.level == std::vector{CopyLevel::peer}));
  CHECK(s.expect.resumed_after == std::vector<std::int64_t>{4, 8});
  CHECK((s.expect.excluded == std::vector<std::int64_t>{2, 3} && s.expect.within_s == 30 && s.expect.finishes));
}

TEST_CASE("kinds, domains and places that make no sense together are refused with what is allowed") {
  refused(kRank1 + kStep2 + "what: {kind: stop}", "found 'stop'");
  refused("who: {domain: galaxy}, " + kStep2 + kKill, "found 'galaxy'");
  refused("who: {domain: rank}, " + kStep2 + kKill, "which rank is hit?");
  refused("who: {domain: node}, when: {time: 3h}, " + kKill, "which node is hit?");
  refused("who: {domain: node, index: 1}, when: {per_1000_node_days: 1}, " + kKill, "found an index with a rate");
  refused("who: {domain: node, index: 1}, when: {trace: a.csv}, " + kKill, "found an index with a trace");
  refused("who: {domain: all, index: 1}, " + kStep2 + kKill, "'all' is one and has no numbers");
  refused("who: {share: 0.5, of: agent}, when: {per_1000_node_days: 1}, " + kKill, "has no members");
  refused("who: {share: 0.5, of: node}, " + kStep2 + kKill, "is hit at a rate");
  refused(kRank1 + "when: {step: 2, at: 'layer 3'}, " + kKill, "needs begin, checkpoint");
  refused(kRank1 + "when: {step: 0}, " + kKill, "step");
  refused(kRank1 + "when: {step: 4, at: checkpoint, saved: true}, " + kKill, "saved");
  refused(kRank1 + "when: {step: 4, at: checkpoint, after: 1.5}, " + kKill, "after");
  refused(kRank1 + "when: {step: 2, after: 0.5}, " + kKill, "after");
  refused(kRank1 + "when: {at: reload}, " + kKill, "needs 1 or more");
  refused(kRank1 + "when: {at: reload, step: 3}, generation: 1, " + kKill, "step");
  refused("who: {domain: all}, " + kStep2 + "what: {kind: abort}", "found 'all', abort hits one of: rank");
  refused("who: {domain: node, index: 0}, " + kStep2 + "what: {kind: damage, how: truncate}", "hits one of: storage");
  refused(kRank1 + kStep2 + "what: {kind: corrupt, tensor: weight}", "found neither of bit and zero");
  refused(kRank1 + kStep2 + "what: {kind: corrupt, tensor: weight, bit: 32}", "bit");
  refused(kRank1 + kStep2 + "what: {kind: corrupt, tensor: weight, bit: 3, zero: true}", "found both");
  refused(kRank1 + "when: {step: 4, at: checkpoint}, what: {kind: corrupt, tensor: weight, bit: 3}", "at an op");
  refused(kRank1 + kStep2 + "what: {kind: slow, factor: 1}", "factor");
  refused(kRank1 + kStep2 + "what: {kind: exit, status: 0}", "status");
  refused(kRank1 + kStep2 + "what: {kind: kill, takes: [gold]}", "allowed is local_copies");
  refused(kRank1 + kStep2 + "what: {kind: exit, status: 3}, lasts: 3s", "'exit' has no end");
  refused(kRank1 + kStep2 + "what: {kind: kill, factor: 2}", "factor");
  refused(kRank1 + kStep2 + kKill + ", lasts: 0s", "above 0");
  refused(kRank1 + kStep2 + kKill + ", generation: 4294967296", "generation");
  refused(kRank1 + kStep2 + kKill + ", repeats: 4294967297", "repeats");
  refused(kRank1 + kStep2 + kKill + ", repeats: 0", "repeats");
}

TEST_CASE("contradictory policies are refused") {
  const auto policy = [](const std::string& text) { return "policy: {" + text + "}\n"; };
  refused(kRank1 + kStep2 + kKill, "found 'spare', but nodes.spares is 0", policy("on_loss: [spare, restart]"));
  refused(kRank1 + kStep2 + kKill, "found 'shrink' after 'restart'", policy("on_loss: [restart, shrink]"));
  refused(kRank1 + kStep2 + kKill, "twice", policy("on_loss: [shrink, shrink]"));
  refused(kRank1 + kStep2 + kKill, "found 'pray'", policy("on_loss: [pray]"));
  refused(kRank1 + kStep2 + kKill, "found none", policy("on_loss: []"));
  CHECK_THROWS_WITH(read("name: s\nrun: r\nevents: []\n"), Catch::Contains("at least one"));
  const auto expect = [](const std::string& text) { return "expect: {" + text + "}\n"; };
  refused(kRank1 + kStep2 + kKill, "a list of such steps", expect("resumed_after: [4, -1]"));
  refused(kRank1 + kStep2 + kKill, "a list of such steps", expect("resumed_after: []"));
  refused(kRank1 + kStep2 + kKill, "found 'disk'", expect("level: [local, disk]"));
  CHECK(with_event(kRank1 + kStep2 + kKill, expect("excluded: []")).expect.excluded == std::vector<std::int64_t>());
  CHECK_FALSE(with_event(kRank1 + kStep2 + kKill).expect.excluded);
}

TEST_CASE("what the run has not cannot be struck in a drill") {
  impossible("who: {domain: rank, index: 4}, " + kStep2 + kKill, "has ranks 0..3");
  impossible("who: {domain: replica, index: 2}, " + kStep2 + kKill, "has replicas 0..1");
  impossible("who: {domain: node, index: 2}, " + kStep2 + kKill, "has nodes 0..1", "nodes: {ranks: 2}\n");
  impossible("who: {domain: rack, index: 1}, " + kStep2 + kKill, "has rack 0..0", "nodes: {ranks: 2}\n");
  impossible("who: {domain: rail, index: 0}, " + kStep2 + "what: {kind: slow, factor: 2}", "simulated alone");
  impossible("who: {domain: storage}, " + kStep2 + "what: {kind: slow, factor: 2}", "simulated alone");
  impossible("who: {domain: agent}, " + kStep2 + "what: {kind: hang}", "nobody ends a hang of the agent");
  impossible(kRank1 + "when: {step: 7}, " + kKill, "has steps 1..6");
  impossible(kRank1 + "when: {step: 3, at: checkpoint}, " + kKill, "saves every 4 steps and at its end, step 6");
  impossible("who: {domain: rank, index: 3}, when: {step: 4, at: checkpoint}, " + kKill, "ranks 0..1 write");
  impossible(kRank1 + "when: {step: 4, at: manifest}, " + kKill, "rank 0 alone writes manifests");
  const std::string nodes = "nodes: {ranks: 1, per_rack: 2, spares: 1}\n", saving = "when: {step: 4, at: checkpoint}, ";
  impossible("who: {domain: node, index: 2}, " + saving + kKill, "found node 2, but ranks 0..1 write", nodes);
  impossible("who: {domain: node, index: 4}, " + saving + kKill, "found node 4, but ranks 0..1 write", nodes);
  impossible("who: {domain: rack, index: 1}, " + saving + kKill, "found rack 1, but ranks 0..1 write", nodes);
  impossible("who: {domain: replica, index: 1}, " + saving + kKill, "found replica 1, but ranks 0..1 write");
  impossible("who: {domain: node, index: 1}, when: {step: 4, at: manifest}, " + kKill, "rank 0 alone writes", nodes);
  impossible("who: {domain: node, index: 0}, " + kStep2 + "what: {kind: damage, how: old_manifest, level: peer}",
             "needs level: storage");
  impossible("who: {domain: node, index: 0}, " + kStep2 + "what: {kind: damage, how: stale_latest, level: local}",
             "needs level: storage");
  impossible("who: {domain: rank, index: 0}, when: {step: 4, at: manifest}, what: {kind: exception}",
             "no rank ends by it");
  RunSpec sharded_optimizer = run_of(2, 2, 6, 4);
  sharded_optimizer.layout.optimizer_shard = 2;  // all four have a part of the state
  CHECK_NOTHROW(check_drill(with_event("who: {domain: rank, index: 3}, " + saving + kKill), sharded_optimizer, {}, {}));
  impossible(kRank1 + "when: {step: 3, at: mb0.L1.expert.bwd}, " + kKill, "did you mean 'mb0.L1.experts.bwd'");
  impossible(kRank1 + "when: {step: 3, at: optimizer, phase: issued}, " + kKill, "is computed and not waited for");
  impossible(kRank1 + "when: {time: 3h}, " + kKill, "simulated alone");
  impossible(kRank1 + kStep2 + "what: {kind: corrupt, tensor: weight, layer: 2, zero: true}", "has blocks 0..1");
  impossible(kRank1 + kStep2 + kKill, "no whole number of such nodes", "nodes: {ranks: 3}\n");
  impossible(kRank1 + kStep2 + kKill, "at most as many stand by", "nodes: {ranks: 2, spares: 3}\n");
  impossible(kRank1 + kStep2 + kKill, "the run some-run has 2", "policy: {min_replicas: 3}\n");
  impossible(kRank1 + kStep2 + kKill, "there are nodes 0..1", "nodes: {ranks: 2}\nexpect: {excluded: [2]}\n");
  const std::string without = "policy: {on_loss: [without_replica, restart]}\n";
  impossible(kRank1 + kStep2 + kKill, "a replica of some-run has 2 ranks", "nodes: {ranks: 4}\n" + without);
  const auto impossible_for = [&](const auto& change, const std::string& why) {
    RunSpec run = run_of(2, 2, 6, 4);
    change(run);
    CHECK_THROWS_WITH(check_drill(with_event(kRank1 + kStep2 + kKill, without), run, {}, {}), Catch::Contains(why));
  };
  impossible_for([](RunSpec& run) { run.layout.replicate = 1; }, "has one replica");
  impossible_for([](RunSpec& run) { run.layout.optimizer_shard = 2; }, "share one optimizer state");
  impossible_for([](RunSpec& run) { run.device = DeviceKind::cuda; }, "needs device: cpu");
  CHECK_NOTHROW(check_drill(with_event(kRank1 + "when: {step: 5, saved: true}, " + kKill), run_of(2, 2, 6, 4), {}, {}));
  impossible(kRank1 + "when: {step: 4, saved: true}, " + kKill, "has no save before step 4");
  CHECK_NOTHROW(check_drill(with_event(kRank1 + "when: {step: 3, at: mb0.L1.dispatch.fwd, phase: issued}, " + kKill),
                            run_of(2, 2, 6, 4), {"mb0.L1.dispatch.fwd"}, {"mb0.L1.dispatch.fwd"}));
}

TEST_CASE("an event strikes its members in its generations") {
  const Scenario s = with_event("who: {domain: node, index: 1}, " + kStep2 + kKill + ", generation: 1, repeats: 2",
                                "nodes: {ranks: 2}\n");
  const FaultEvent& e = s.events[0];
  CHECK(strikes(e, {.rank = 3, .node = 1, .generation = 1}));
  CHECK(strikes(e, {.rank = 3, .node = 1, .generation = 2}));
  CHECK_FALSE(strikes(e, {.rank = 3, .node = 1, .generation = 0}));
  CHECK_FALSE(strikes(e, {.rank = 3, .node = 1, .generation = 3}));
  CHECK_FALSE(strikes(e, {.rank = 1, .node = 0, .generation = 1}));
}
