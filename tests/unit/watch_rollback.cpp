// Behind a diverged loss: which checkpoint a run goes back to, which batches it leaves out, and how often.
#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/files/run.hpp"
#include "planner/watch/decision_log.hpp"
#include "tests/fixtures/ladder_script.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

namespace {

using Ranges = std::vector<BatchRange>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The start that it came to; fails where there is none.
const WatchAction& start_of(const Script& script) {
  const auto found = std::find_if(script.verdicts.rbegin(), script.verdicts.rend(), [](const WatchVerdict& verdict) {
    return verdict.action && verdict.action->hook == HookKind::start;
  });
  REQUIRE(found != script.verdicts.rend());
  return *found->action;
}

}  // namespace

TEST_CASE("a step's batch is the one in its place among those that are not left out") {
  const Ranges skipped{{3, 3}, {5, 7}, {9, 9}};
  const std::vector<std::int64_t> trained{1, 2, 4, 8, 10, 11};
  for (std::size_t i = 0; i < trained.size(); ++i)
    CHECK(batch_of(static_cast<std::int64_t>(i) + 1, skipped) == trained[i]);
  CHECK(batch_of(7, {}) == 7);
}

TEST_CASE("ranges together are ascending, and none holds a batch of another") {
  CHECK(united({{5, 6}}, {{1, 2}}) == Ranges{{1, 2}, {5, 6}});
  CHECK(united({{1, 4}, {8, 9}}, {{3, 8}}) == Ranges{{1, 9}});
  CHECK(united({{1, 9}}, {{3, 4}}) == Ranges{{1, 9}});
  CHECK(united({{1, 4}}, {{5, 5}}) == Ranges{{1, 5}});  // what touches is one
  CHECK(united({}, {}).empty());
}

TEST_CASE("back to the newest checkpoint that is old enough, and from there on batches are left out over the bad one") {
  const RollbackTargets targets{.checkpoints = {120, 100, 91, 90, 80}};
  const auto back = [&](std::int64_t margin, std::optional<std::int64_t> skip, std::optional<std::int64_t> before) {
    return choose_rollback(targets, 100, {margin, skip}, before);
  };
  CHECK(back(10, 1, {})->step == 90);
  CHECK(back(9, 1, {})->step == 91);
  CHECK(back(10, 1, 90)->step == 80);
  CHECK_FALSE(back(10, 1, 80));
  CHECK_FALSE(back(21, 1, {}));
  CHECK(back(10, 1, {})->skipped == BatchRange{91, 100});
  CHECK(back(10, 10, {})->skipped == BatchRange{91, 100});
  CHECK(back(10, 30, {})->skipped == BatchRange{91, 120});
  CHECK(back(10, std::nullopt, {})->skipped == BatchRange{91, 91});
  // What the run leaves out already shifts its batches: step 90 had batch 95, and the next six were none.
  const RollbackTargets shifted{.checkpoints = {90}, .skipped = {{11, 15}, {96, 101}}};
  CHECK(choose_rollback(shifted, 100, {10, 1}, {})->skipped == BatchRange{102, 111});
  CHECK(to_string(*back(10, 30, {})) == "from step 90, 10 steps before step 100, leaving out batches 91-120");
  CHECK(to_string(*back(10, std::nullopt, {})) == "from step 90, 10 steps before step 100, leaving out batch 91");
}

TEST_CASE("a diverged loss: the start goes back to before it, whatever the sweep says") {
  for (const std::vector<HealthVerdict>& sweeps : {std::vector{kHealthy}, {kThird, kThird}}) {
    Script script(1);
    script.sweeps = sweeps;
    script.look(lost());
    const WatchAction& start = start_of(script);
    REQUIRE(start.rollback);
    CHECK(start.rollback->step == 80);  // the loss has diverged since step 97, the margin is 10
    CHECK(start.rollback->bad_step == 97);
    CHECK(start.skipped == Ranges{{81, 100}});
    CHECK(script.ladder.ledger().skipped == start.skipped);
  }
  Script doubtful(1);
  doubtful.ends["sweep"] = HookEnd::How::no_answer;
  doubtful.look(lost());
  CHECK(start_of(doubtful).rollback);
  Script shrunk(0, shrinks_by(4.0 / 3));
  shrunk.sweeps = {kThird, kThird};
  shrunk.look(lost());
  CHECK(start_of(shrunk).layout == "layout-24.yaml");
  CHECK(start_of(shrunk).rollback);
}

TEST_CASE("gradients alone go back, too; slow and silent runs do not") {
  Script script(1);
  script.sweeps = {kHealthy};
  RunSnapshot gradients = lost();
  gradients.signals[0].metric = WatchedMetric::grad_norm;
  gradients.signals.push_back(slow().signals[0]);
  gradients.signals[1].first_step = 50;  // is no sign of when the loss diverged
  script.look(gradients);
  CHECK(start_of(script).rollback->bad_step == 97);
  for (const RunSnapshot& other : {slow(), silent()}) {
    Script no(1);
    no.sweeps = {kHealthy};
    no.look(other);
    CHECK_FALSE(start_of(no).rollback);
    CHECK(start_of(no).skipped.empty());
  }
}

TEST_CASE("each time that it comes again at the same place the run goes further back, and then a human has to look") {
  Script script(0);
  script.sweeps = {kHealthy};
  for (const std::int64_t step : {80, 70, 60}) {
    script.look(lost());
    CHECK(start_of(script).rollback->step == step);
    CHECK(script.ladder.ledger().skipped == Ranges{{step + 1, 100}});
    script.verify(true, 90);
    script.look({.step = 95});
  }
  script.look(lost());
  CHECK(script.did == Names{"tell"});
  CHECK_THAT(script.ladder.ledger().breaker, Contains("3 restarts for one cause (loss)"));
}

TEST_CASE("a checkpoint that has the fault in it: the next older one is taken at once") {
  Script script(0);
  script.sweeps = {kHealthy};
  script.look(lost());
  script.verify(false, 90);
  CHECK_THAT(script.why(), Contains("it did not help"));
  script.look(lost());
  CHECK(start_of(script).rollback->step == 70);
}

TEST_CASE("once the run is beyond the place, another one is met from its own newest checkpoint") {
  Script script(0);
  script.sweeps = {kHealthy};
  script.look(lost(100));
  script.verify(true, 90);
  script.look({.step = 101});
  script.look(lost(300));
  CHECK(start_of(script).rollback->step == 280);
  CHECK(start_of(script).skipped == Ranges{{81, 100}, {281, 300}});  // a start of the first kind would train on them
}

TEST_CASE("what was left out stays left out when the job is started for another reason") {
  Script script(0);
  script.sweeps = {kHealthy};
  script.look(lost(100));
  script.verify(true, 101);
  script.look(silent(120));
  CHECK(script.did == Names{"stop", "start"});
  CHECK_FALSE(start_of(script).rollback);
  CHECK(start_of(script).skipped == Ranges{{81, 100}});
}

TEST_CASE("without a checkpoint that is old enough the job is left as it is and a human is told") {
  Script script(1);
  RunSnapshot young = lost();
  young.rollback_targets->checkpoints = {100, 90};
  script.look(young);
  CHECK(script.did == Names{"tell"});
  CHECK(script.why() == "no checkpoint is kept that is 10 steps before step 97, where the loss diverged");
  CHECK(script.ladder.ledger().causes.empty());
  Script again(1);
  again.sweeps = {kHealthy};
  young.rollback_targets->checkpoints = {80};
  again.look(young);
  again.verify(true, 90);
  again.look(young);
  CHECK(again.did == Names{"tell"});
  CHECK_THAT(again.why(), Contains("10 steps before step 97") && Contains("and older than step 80"));
  Script unreadable(1);
  young.rollback_targets = RollbackTargets{.missing = "run.yaml: cannot be read"};
  unreadable.look(young);
  CHECK(unreadable.did == Names{"tell"});
  CHECK_THAT(unreadable.why(), Contains("no checkpoint to go back to") && Contains("run.yaml: cannot be read"));
}

TEST_CASE("without permission to act it says how far it would go back") {
  Script script(1, hour_left, {}, false);
  script.look(lost());
  CHECK(script.did.empty());
  CHECK_THAT(script.why(), Contains("start from step 80, 17 steps before step 97, leaving out batches 81-100"));
  Script over(1, hour_left, {}, false);  // of a run that has ended nobody knows what was kept then
  RunSnapshot past = lost();
  past.rollback_targets.reset();
  over.look(past);
  CHECK_THAT(over.why(), Contains("sweep twice, cordon what both sweeps find, start and verify"));
}

TEST_CASE("where the job stands until a repair, the human is told where to start") {
  Script script(0, [](const LossQuestion& question) {
    LossFigures out = shrinks_by(4.0 / 3)(question);
    out.repair_s = 1, out.remaining_s = 36000;
    return out;
  });
  script.sweeps = {kThird, kThird};
  script.look(lost());
  CHECK(script.did == Names{"stop", "sweep", "sweep", "cordon n2", "tell"});
  CHECK_THAT(script.why(), Contains("then start it from step 80") && Contains("batches 81-100"));
}

TEST_CASE("the decision says where the run went back to, why, and what it leaves out") {
  Script script(1);
  script.sweeps = {kHealthy};
  script.look(lost());
  const WatchVerdict& verdict = script.verdicts.at(script.verdicts.size() - 2);
  CHECK_THAT(verdict.why, Contains("from step 80, 17 steps before step 97, leaving out batches 81-100"));
  const nlohmann::json written = decision_json("run", verdict, nullptr, &script.ladder.ledger());
  CHECK(written["action"]["rollback"] ==
        nlohmann::json::parse(R"({"step": 80, "bad_step": 97, "skipped": [[81, 100]]})"));
  CHECK(written["ledger"]["skipped"] == nlohmann::json::parse("[[81, 100]]"));
  CHECK(written["ledger"]["causes"]["loss"]["back_to"] == 80);
}

TEST_CASE(
    "a watch that ends between stop and start is followed by one that goes back, unless somebody has started it") {
  NodeLedger ledger;
  ledger.causes["loss"] = {1, 100};
  ledger.rollback = Rollback{80, 97, {81, 100}};
  ledger = ledger_from_json(nlohmann::json(ledger), "decisions.jsonl:1");
  Script script(1, hour_left, ledger);
  script.look(silent(100));
  CHECK(script.did == Names{"stop", "start"});
  CHECK(start_of(script).rollback->step == 80);
  CHECK(start_of(script).skipped == Ranges{{81, 100}});
  CHECK_FALSE(script.ladder.ledger().rollback);
  CHECK(script.ladder.ledger().causes.at("loss").back_to == 80);
  Script started(1, hour_left, ledger);
  started.look(silent(130));
  CHECK_FALSE(start_of(started).rollback);
}

TEST_CASE("a ledger with batches that are none is refused") {
  for (const char* wrong : {"[[0, 3]]", "[[5, 4]]", "[[1, 3], [3, 4]]", "[[1]]"}) {
    nlohmann::json ledger = NodeLedger{};
    ledger["skipped"] = nlohmann::json::parse(wrong);
    INFO(wrong);
    CHECK_THAT(usage_error([&] { ledger_from_json(ledger, "decisions.jsonl:1"); }), Contains("skipped"));
  }
}

TEST_CASE("the first bad step is known however late the watch looks") {
  const auto first_bad = [](int steps, const std::function<void(TrainingStep&)>& change) {
    const TrainingObservation run = made_up_run(steps, change);
    const WatchRules rules = short_rules();
    const auto signals = RunSignals(run, rules, {}).now();
    REQUIRE(signals.size() == 1);
    return signals[0].first_step;
  };
  const auto no_number = [](TrainingStep& s) {
    if (s.step > 30) s.loss = kNaN;
  };
  CHECK(first_bad(34, no_number) == 31);
  CHECK(first_bad(90, no_number) == 31);  // also where all of the window is lost
  CHECK(first_bad(36, [](TrainingStep& s) { s.loss = s.step > 30 ? kNaN : s.step == 30 ? 30 : 5; }) == 30);
}

TEST_CASE("a jump that is over by the next look has been one") {
  const WatchRules rules = short_rules();
  const TrainingObservation run =
      made_up_run(90, [](TrainingStep& s) { s.loss = s.step > 30 && s.step < 36 ? 30 : 5; });
  CHECK(RunSignals(run, rules, {}).now().empty());
  const auto lost = RunSignals(run, rules, {}).lost_since(run.steps[20].unix_s);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].first_step == 31);
  CHECK(lost[0].last_step == 34);
  CHECK(RunSignals(run, rules, {}).lost_since(run.steps[60].unix_s).empty());
}

TEST_CASE("a run that ends at the same step twice, its gradients no numbers, has lost its loss and is not silent") {
  const WatchRules rules = short_rules();
  TrainingObservation run = made_up_run(34, [](TrainingStep& s) {
    if (s.step == 34) s.loss = 30;
  });
  run.now_unix_s += 3600;
  run.diverged = DivergedStep{35, 1, run.now_unix_s};
  CHECK(RunSignals(run, rules, {}).now().at(0).metric == WatchedMetric::silence);
  run.diverged->times = 2;
  const auto signals = RunSignals(run, rules, {}).now();
  REQUIRE(signals.size() == 2);
  CHECK(signals[0].metric == WatchedMetric::loss);
  CHECK(signals[0].first_step == 34);  // which jumped before it was no number
  CHECK(signals[1].metric == WatchedMetric::grad_norm);
  CHECK(signals[1].first_step == 35);
  CHECK(std::isnan(signals[1].value));
  CHECK(RunSignals(run, rules, {}).after(33, run.now_unix_s).at(0).metric == WatchedMetric::silence);
  CHECK(RunSignals(run, rules, {}).recovered(signals[1], run.now_unix_s - 1, 4) == std::optional(false));
  CHECK_FALSE(RunSignals(run, rules, {}).recovered(signals[1], run.now_unix_s, 4));  // that was before the start
  Script script(0);
  script.sweeps = {kHealthy};
  RunSnapshot snapshot = lost(34);
  snapshot.signals = signals;
  script.look(snapshot);
  CHECK(start_of(script).rollback->bad_step == 34);
}

TEST_CASE("a run file that leaves batches out is the run's own but for them, and goes on where the run was") {
  const TempDirectory folder;
  RunSpec run = read_run("configs/runs/tiny-moe.yaml");
  run.resilience.skipped = {{2, 3}}, run.autoresume = false;
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  write_skipping(folder / "run.yaml", {{3, 5}}, folder / "out.yaml");
  const RunSpec read = read_run(folder / "out.yaml");
  CHECK(read.resilience.skipped == Ranges{{2, 5}});
  CHECK(read.autoresume);
  run.resilience.skipped = read.resilience.skipped, run.autoresume = true;
  CHECK(run_to_yaml(read) == run_to_yaml(run));
}

TEST_CASE("what is no checkpoint is none to go back to") {
  const TempDirectory folder;
  CHECK_THAT(read_rollback_targets(folder.path()).missing, Contains("run.yaml"));
  write_bytes(folder / "run.yaml", read_bytes("configs/runs/tiny-moe.yaml"));
  CHECK(read_rollback_targets(folder.path()).missing.empty());
  CHECK(read_rollback_targets(folder.path()).checkpoints.empty());
  std::filesystem::create_directories(folder / "checkpoints" / "step-00000004");
  std::filesystem::create_directories(folder / "checkpoints" / "step-00000008.skipped-batches");
  CHECK(read_rollback_targets(folder.path()).checkpoints.empty());
}

TEST_CASE("a run that keeps too few checkpoints for a rollback is warned about at the start") {
  const TempDirectory folder;
  const auto said = [&](const std::function<void(RunSpec&)>& change) {
    RunSpec run = read_run("configs/runs/tiny-moe.yaml");
    run.save_interval = 4, run.keep_checkpoints = 3;
    change(run);
    write_bytes(folder / "run.yaml", run_to_yaml(run));
    return too_few_checkpoints(folder.path(), {8, 1});
  };
  CHECK(too_few_checkpoints(folder.path(), {8, 1}).empty());  // nobody knows
  CHECK(said([](RunSpec&) {}).empty());
  CHECK_THAT(said([](RunSpec& run) { run.keep_checkpoints = 2; }),
             Contains("keeps 2 checkpoints, one every 4 steps; a rollback of 8 steps"));
  CHECK_THAT(said([](RunSpec& run) { run.save_interval = 3; }), Contains("one every 3 steps"));
  CHECK(said([](RunSpec& run) { run.save_interval = 1, run.keep_checkpoints = -1; }).empty());
  CHECK_THAT(said([](RunSpec& run) { run.save_interval = 0; }), Contains("keeps no checkpoints during the run"));
  CHECK_THAT(said([](RunSpec& run) { run.save = false; }), Contains("keeps no checkpoints during the run"));
}

TEST_CASE("rules that go back nowhere, and hooks that cannot") {
  const TempDirectory folder;
  const std::string good = read_bytes("configs/watch/default.yaml");
  const auto rules = [&](const std::string& rollback) {
    const std::string from = "rollback: {margin: 100, skip: 200}";
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), rollback);
    write_bytes(folder / "rules.yaml", text);
    return usage_error([&] { read_watch_rules((folder / "rules.yaml").string()); });
  };
  CHECK(rules("rollback: {margin: 1, skip: 1}") == "no error");
  CHECK(rules("rollback: {margin: 1, skip: least}") == "no error");
  CHECK_FALSE(read_watch_rules((folder / "rules.yaml").string()).rollback.skip);
  CHECK_THAT(rules("rollback: {margin: 0, skip: 1}"), Contains("margin: found '0', needs a whole number in 1..10000"));
  CHECK_THAT(rules("rollback: {margin: ten, skip: 1}"), Contains("margin: found 'ten'"));
  CHECK_THAT(rules("rollback: {margin: 10, skip: none}"), Contains("found 'none', needs a number of batches"));
  CHECK_THAT(rules("rollback: {margin: 10, skip: -5}"), Contains("found '-5', needs a number of batches"));
  CHECK_THAT(rules("rollback: {margin: 10, skip: 0}"), Contains("needs a whole number in 1.."));
  CHECK_THAT(rules("rollback: {margin: 10}"), Contains("skip"));
  CHECK_THAT(rules("rollback: {margin: 10, skip: 1, further: 2}"), Contains("further"));
  CHECK_THAT(rules("rollback: 100"), Contains("rollback"));
  CHECK_THAT(rules(""), Contains("rollback"));

  WatchHooks hooks = read_watch_hooks("hooks-local");
  const WatchRules watched = read_watch_rules("default");
  CHECK(usage_error([&] { check_start(hooks, watched); }) == "no error");
  hooks.commands.at(HookKind::start).words = {"start", "{run}"};
  CHECK_THAT(usage_error([&] { check_start(hooks, watched); }),
             Contains("found no {layout}, which the rule 'loss jump' needs"));
  WatchRules paces = watched;
  std::erase_if(paces.signals, [](const SignalRule& rule) {
    return rule.metric == WatchedMetric::loss || rule.metric == WatchedMetric::grad_norm;
  });
  CHECK(usage_error([&] { check_start(hooks, paces); }) == "no error");
}
