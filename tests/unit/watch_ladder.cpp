// The ladder without processes: what was seen and how actions ended go in, the next action comes out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/fixtures/ladder_script.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

TEST_CASE("a slow node is found twice, excluded, replaced by a spare, and the run is confirmed") {
  Script script(1);
  script.sweeps = {kThird, kThird};
  script.look(slow());
  CHECK(script.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "start"});
  CHECK(script.verdicts[4].why == "compute: GPU-0: 50 % slower");
  CHECK(script.verdicts[5].action->excluded == Names{"n2"});
  CHECK(script.verdicts[4].option == RecoveryOption::spare);
  CHECK(script.ladder.ledger().spares_used == 1);
  REQUIRE(script.ladder.verifies());
  CHECK(script.ladder.verifies()->first.metric == WatchedMetric::step_s);
  script.verify({});
  CHECK(script.verdicts.empty());  // too few steps
  script.verify(true);
  CHECK_THAT(script.why(), Contains("it helped"));
  CHECK_FALSE(script.ladder.verifies());
  CHECK(script.ladder.ledger().excluded() == Names{"n2"});
}

TEST_CASE("an uneven router and missing input touch nobody") {
  for (const Ailment ailment : {Ailment::imbalanced_router, Ailment::starved_input}) {
    Script script(1);
    script.look(snapshot_of(WatchedMetric::step_s, ailment));
    CHECK(script.did.empty());
    CHECK_THAT(script.why(), Contains("nobody is touched"));
    script.look(snapshot_of(WatchedMetric::step_s, ailment));
    CHECK(script.verdicts.empty());  // said once
    script.look({});
    CHECK(script.why() == "nothing is wrong any more");
  }
}

TEST_CASE("what nothing explains is a human's, unless the rules say sweep") {
  Script script(1);
  script.look(snapshot_of(WatchedMetric::step_s, Ailment::undecided));
  CHECK(script.did == Names{"tell"});
  WatchRules rules = short_rules();
  rules.sweep_undecided = true;
  Ladder sweeping(rules, 1, true, hour_left, {});
  const auto verdict = sweeping.look(snapshot_of(WatchedMetric::step_s, Ailment::undecided));
  REQUIRE(verdict->action);
  CHECK(verdict->action->hook == HookKind::save);
}

TEST_CASE("memory that grows is a human's, whatever the rules say about slow steps that nothing explains") {
  WatchRules rules = short_rules();
  rules.sweep_undecided = true;
  Ladder ladder(rules, 1, true, hour_left, {});
  const auto verdict = ladder.look(snapshot_of(WatchedMetric::memory, Ailment::undecided));
  REQUIRE(verdict->action);
  CHECK(verdict->action->hook == HookKind::tell);
}

TEST_CASE("without permission to act it says what it would do, once") {
  Script script(1, hour_left, {}, false);
  script.look(slow());
  CHECK(script.did.empty());
  CHECK_THAT(script.why(), Contains("Would save, stop, sweep twice, cordon what both sweeps find, start and verify"));
  script.look(slow(101));
  CHECK(script.verdicts.empty());
  CHECK(script.ladder.ledger().causes.empty());
}

TEST_CASE("silence restarts the job; the second time without progress hardware is swept; then a human has to look") {
  Script script(0);
  script.sweeps = {kHealthy};
  script.look(silent());
  CHECK(script.did == Names{"stop", "start"});
  script.verify({}, 100, 2000);  // no step came within 30 minutes
  CHECK_THAT(script.why(), Contains("no 4 steps came"));
  script.look(silent());
  CHECK(script.did == Names{"stop", "sweep", "start", "tell"});
  script.verify({}, 100, 2000);
  script.look(silent());
  script.verify({}, 100, 2000);
  script.look(silent());
  CHECK(script.did == Names{"tell"});
  CHECK_THAT(script.why(), Contains("circuit breaker opens") && Contains("3 restarts for one cause (silence)"));
  script.look({});
  script.look(silent());
  CHECK(script.did.empty());
  CHECK_THAT(script.why(), Contains("--reset"));
}

TEST_CASE("progress gives silence its restarts back") {
  Script script(0);
  for (std::int64_t step = 100; step < 600; step += 100) {
    script.look(silent(step));
    CHECK(script.did == Names{"stop", "start"});
    script.verify(true, step + 1);
    CHECK_THAT(script.why(), Contains("it helped"));
  }
}

TEST_CASE("a loss that is lost at the same step each time is not restarted for ever") {
  Script script(0);
  script.sweeps = {kHealthy};
  for (int restart = 1; restart <= 3; ++restart) {
    script.look(lost());
    CHECK(script.did == Names{"stop", "sweep", "start", "tell"});
    script.verify(true, 90);  // from a checkpoint before it all is well at first
    CHECK_THAT(script.why(), Contains("it helped"));
    script.look({.step = 99});
  }
  script.look(lost());
  CHECK(script.did == Names{"tell"});
  CHECK_THAT(script.why(), Contains("3 restarts for one cause (loss)"));
  // One that is left behind counts no more.
  Script beyond(0);
  beyond.sweeps = {kHealthy};
  for (std::int64_t step = 100; step < 600; step += 100) {
    beyond.look(lost(step));
    CHECK(beyond.did == Names{"stop", "sweep", "start", "tell"});
    beyond.verify(true, step - 10);
    beyond.look({.step = step + 1});
  }
}

TEST_CASE("of several signals the gravest says what is done and what has to be fixed") {
  Script script(0);
  RunSnapshot both = silent();
  both.signals.insert(both.signals.begin(), slow().signals.front());
  script.look(both);
  CHECK(script.did == Names{"stop", "start"});
  REQUIRE(script.ladder.verifies());
  CHECK(script.ladder.verifies()->first.metric == WatchedMetric::silence);
}

TEST_CASE("a diverged loss is not saved") {
  Script script(1);
  script.sweeps = {kThird, kThird};
  script.look(lost());
  CHECK(script.did == Names{"stop", "sweep", "sweep", "cordon n2", "start"});
}

TEST_CASE("a sweep that cannot answer excludes nobody") {
  for (const auto how : {HookEnd::How::no_answer, HookEnd::How::timed_out, HookEnd::How::failed}) {
    Script script(1);
    script.ends["sweep"] = how;
    script.look(slow());
    CHECK(script.did == Names{"save", "stop", "sweep", "start", "tell"});
    CHECK_THAT(script.why(), Contains("the sweep cannot answer") && Contains("nobody was excluded"));
    CHECK(script.ladder.ledger().excluded().empty());
  }
}

TEST_CASE("what the second sweep does not confirm, and what is not sure enough, is not cordoned") {
  Script once(1);
  once.sweeps = {kThird, sweep_of(8, {"n5"})};
  once.look(slow());
  CHECK(once.did == Names{"save", "stop", "sweep", "sweep", "start", "tell"});
  Script doubtful(1);
  doubtful.sweeps = {sweep_of(8, {"n2"}, 0.98)};
  doubtful.look(slow());
  CHECK(doubtful.did == Names{"save", "stop", "sweep", "start", "tell"});
}

TEST_CASE("a node that came back and fails again is cordoned after one sweep") {
  NodeLedger ledger;
  ledger.cordoned["n2"] = {500, false};
  Script script(1, hour_left, ledger);
  script.sweeps = {kThird};
  script.look(slow());
  CHECK(script.did == Names{"save", "stop", "sweep", "cordon n2", "start"});
  CHECK(script.ladder.ledger().excluded() == Names{"n2"});
}

TEST_CASE("at most a quarter of the nodes without a human") {
  Script two(4);
  two.sweeps = {sweep_of(8, {"n2", "n3"}), sweep_of(8, {"n2", "n3"})};
  two.look(slow());
  CHECK(two.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "cordon n3", "start"});
  Script three(4);
  three.sweeps = {sweep_of(8, {"n2", "n3", "n4"}), sweep_of(8, {"n2", "n3", "n4"})};
  three.look(slow());
  CHECK(three.did == Names{"save", "stop", "sweep", "sweep", "start", "tell"});
  CHECK_THAT(three.ladder.ledger().breaker, Contains("3 of 8 nodes"));
  // Those of before count.
  NodeLedger before;
  before.cordoned["n8"] = before.cordoned["n9"] = {500, false};
  Script third(4, hour_left, before);
  third.sweeps = {kThird, kThird};
  third.look(slow());
  CHECK_THAT(third.ladder.ledger().breaker, Contains("3 of 10 nodes"));
  // So do those that came back, and none twice.
  NodeLedger repaired;
  repaired.cordoned["n0"] = repaired.cordoned["n1"] = {500, true};
  Script back(4, hour_left, repaired);
  back.sweeps = {kThird, kThird};
  back.look(slow());
  CHECK_THAT(back.ladder.ledger().breaker, Contains("3 of 8 nodes"));
  Script again(4, hour_left, repaired);
  again.sweeps = {sweep_of(8, {"n1"}), sweep_of(8, {"n1"})};
  again.look(slow());
  CHECK(again.ladder.ledger().breaker.empty());
}

TEST_CASE("what did not help is undone") {
  Script spare(1);
  spare.sweeps = {kThird, kThird};
  spare.look(slow());
  spare.verify(false);
  CHECK(spare.did == Names{"uncordon n2", "tell"});
  CHECK(spare.ladder.ledger().excluded().empty());
  CHECK(spare.ladder.ledger().spares_used == 0);
  spare.look(slow());
  CHECK(spare.verdicts.empty());  // left to the human
  Script shrunk(0, shrinks_by(1.2));
  shrunk.sweeps = {kThird, kThird};
  shrunk.look(slow());
  CHECK(shrunk.did.back() == "start layout-24.yaml");
  CHECK(shrunk.ladder.ledger().step_factor == 1.2);
  shrunk.verify(false);
  CHECK(shrunk.did == Names{"uncordon n2", "save", "stop", "start", "tell"});
  CHECK(shrunk.ladder.ledger().step_factor == 1);
}

TEST_CASE("without a spare the option that loses least is taken, and none where costs are unknown") {
  Script unknown(0, nothing_known);
  unknown.sweeps = {kThird, kThird};
  unknown.look(slow());
  CHECK(unknown.did == Names{"save", "stop", "sweep", "sweep", "start", "tell"});
  CHECK_THAT(unknown.why(), Contains("UNKNOWN"));
  // An hour at half speed costs an hour; on three quarters 20 minutes and a restart; a repair a day.
  Script shrink(0, shrinks_by(4.0 / 3));
  shrink.sweeps = {kThird, kThird};
  shrink.look(slow());
  CHECK(shrink.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "start layout-24.yaml"});
  // A repair that is shorter than a restart and a third is worth waiting for: 130 s against 2 x 60 + 70 / 4.
  Script wait(0, [](const LossQuestion& question) {
    LossFigures out = shrinks_by(4.0 / 3)(question);
    out.repair_s = 70, out.remaining_s = 36000;
    return out;
  });
  wait.sweeps = {kThird, kThird};
  wait.look(slow());
  CHECK(wait.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "tell"});
  CHECK_THAT(wait.why(), Contains("stands until n2 is repaired"));
  wait.look(silent());
  CHECK(wait.did.empty());  // its silence is meant
}

TEST_CASE("a run that is nearly done is left alone") {
  Script script(1, [](const LossQuestion& question) {
    LossFigures out = hour_left(question);
    out.remaining_s = 30;  // half speed costs 30 s, a restart 60 s
    return out;
  });
  script.look(slow());
  CHECK(script.did.empty());
  CHECK_THAT(script.why(), Contains("to stop costs more"));
  CHECK(script.verdicts.back().alternatives.size() == 4);
}

TEST_CASE("each hook that fails leaves the nodes as they were and tells a human") {
  struct Case {
    const char* hook;
    Names did;
    bool breaker;
  };
  const Case cases[] = {
      {"save", {"save", "tell"}, false},
      {"stop", {"save", "stop", "tell"}, true},
      {"start", {"save", "stop", "sweep", "sweep", "cordon n2", "start", "start", "tell"}, true},
      {"tell", {"save", "stop", "sweep", "sweep", "cordon n2", "start"}, false},
  };
  for (const Case& c : cases)
    for (const auto how : {HookEnd::How::failed, HookEnd::How::timed_out}) {
      INFO(c.hook << " " << to_string(how));
      Script script(1);
      script.sweeps = {kThird, kThird};
      script.ends[c.hook] = how;
      script.look(slow());
      CHECK(script.did == c.did);
      CHECK(script.ladder.ledger().breaker.empty() == !c.breaker);
    }
  Script unsaid(1);  // what did not answer in time may have been done
  unsaid.sweeps = {kThird, kThird};
  unsaid.ends["cordon n2"] = HookEnd::How::timed_out;
  unsaid.look(slow());
  CHECK(unsaid.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "uncordon n2", "start", "tell"});
  CHECK(unsaid.ladder.ledger().cordoned.empty());
  CHECK(unsaid.ladder.ledger().spares_used == 0);
  Script refused(1);
  refused.sweeps = {kThird, kThird};
  refused.ends["cordon n2"] = HookEnd::How::failed;
  refused.look(slow());
  CHECK(refused.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "start", "tell"});
  CHECK(refused.ladder.ledger().breaker.empty());
  // The first of two is free again where the second cannot be cordoned.
  Script two(2);
  two.sweeps = {sweep_of(8, {"n2", "n3"}), sweep_of(8, {"n2", "n3"})};
  two.ends["cordon n3"] = HookEnd::How::failed;
  two.look(slow());
  CHECK(two.did == Names{"save", "stop", "sweep", "sweep", "cordon n2", "cordon n3", "uncordon n2", "start", "tell"});
  CHECK(two.ladder.ledger().excluded().empty());
  CHECK(two.ladder.ledger().spares_used == 0);
}

TEST_CASE("sweeps that find nothing are not repeated for ever") {
  Script script(1);
  script.sweeps = {kHealthy};
  int sweeps = 0;
  for (std::int64_t step = 100; step < 2000; step += 100) {
    script.look(slow(step));
    sweeps += static_cast<int>(std::count(script.did.begin(), script.did.end(), "sweep"));
    script.verify(false, step + 50);
    script.look({});  // and it flickers
  }
  CHECK(sweeps == 3);
  CHECK_THAT(script.ladder.ledger().breaker, Contains("3 restarts"));
}

TEST_CASE("a verification goes on where the watch that began it died, and what does not help is undone") {
  Script before(0, shrinks_by(1.2));
  before.sweeps = {kThird, kThird};
  before.look(slow());
  CHECK(before.did.back() == "start layout-24.yaml");
  Script after(0, shrinks_by(1.2), ledger_from_json(nlohmann::json(before.ladder.ledger()), "test"));
  REQUIRE(after.ladder.verifies());
  CHECK(after.ladder.verifies()->first.rule == before.ladder.verifies()->first.rule);
  CHECK(after.ladder.verifies()->second == before.ladder.verifies()->second);
  after.now = before.now;
  after.verify(false);
  CHECK(after.did == Names{"uncordon n2", "save", "stop", "start", "tell"});
  CHECK(after.ladder.ledger().step_factor == 1);
  CHECK(after.ladder.ledger().cordoned.empty());
}

TEST_CASE("a watch that only logs leaves another's verification alone") {
  NodeLedger ledger;
  ledger.trial = {slow().signals.front(), 123, {"n2"}, RecoveryOption::spare, "", 1};
  Script script(1, hour_left, ledger, false);
  CHECK_FALSE(script.ladder.verifies());
  script.verify(false);
  CHECK(script.did.empty());
  script.look(slow());
  CHECK(script.did.empty());
  CHECK_THAT(script.why(), Contains("Would save, stop"));
}

TEST_CASE("what a watch knows outlives it") {
  NodeLedger ledger;
  ledger.cordoned["n2"] = {500, true};
  ledger.causes["silence"] = {2, 77, true};
  ledger.causes["loss"] = {1, 99, false, 80};
  ledger.skipped = {{3, 3}, {81, 100}};
  ledger.trial = {slow().signals.front(), 123, {"n2"}, RecoveryOption::shrink, "b.yaml", 1.5};
  ledger.spares_used = 1, ledger.layout = "a.yaml", ledger.step_factor = 1.25, ledger.breaker = "because";
  CHECK(nlohmann::json(ledger_from_json(ledger, "test")) == nlohmann::json(ledger));
  ledger.trial->signal.value = std::nan("");  // of a loss
  ledger.trial->option.reset();
  CHECK(nlohmann::json(ledger_from_json(ledger, "test")) == nlohmann::json(ledger));
  nlohmann::json wrong = nlohmann::json(ledger);
  wrong["trial"]["way"] = "sideways";
  CHECK_THROWS_WITH(ledger_from_json(wrong, "test"), Contains("sideways"));
  wrong = nlohmann::json(ledger);
  wrong["more"] = 1;
  CHECK_THROWS_WITH(ledger_from_json(wrong, "test"), Contains("more"));
}
