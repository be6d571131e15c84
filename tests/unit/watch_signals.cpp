// Signals of a run, what alternatives cost, and a plan beside its run, against closed forms.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/files/cluster.hpp"
#include "planner/watch/plan_baseline.hpp"
#include "planner/watch/run_watch.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "tests/fixtures/watched_run.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> names(const std::vector<WatchSignal>& signals) {
  std::vector<std::string> out;
  for (const WatchSignal& signal : signals) out.push_back(signal.rule);
  return out;
}

std::vector<std::string> signals_of(const TrainingObservation& run, const WatchBaseline& baseline = {}) {
  return names(RunSignals(run, short_rules(), baseline).now());
}

using Names = std::vector<std::string>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Steps from 31 on take twice as long.
void half_speed(TrainingStep& s) {
  if (s.step > 30) s.step_s *= 2;
}

}  // namespace

TEST_CASE("a metric is a signal once it was wrong for as many steps as the rule says") {
  CHECK(signals_of(made_up_run(40)).empty());
  CHECK(signals_of(made_up_run(33, half_speed)).empty());
  const TrainingObservation run = made_up_run(34, half_speed);
  const WatchRules rules = short_rules();
  const auto found = RunSignals(run, rules, {}).now();
  REQUIRE(names(found) == Names{"slow steps"});
  CHECK(found[0].reference == Approx(1.005).epsilon(0.01));
  CHECK(found[0].limit == Approx(1.2 * found[0].reference));
  CHECK(found[0].value == Approx(2.02).epsilon(0.01));
  CHECK(found[0].first_step == 31);
  CHECK(found[0].last_step == 34);
  // One good step among them, and it is none.
  CHECK(signals_of(made_up_run(34, [](TrainingStep& s) { s.step_s *= s.step > 30 && s.step != 32 ? 2 : 1; })).empty());
}

TEST_CASE("on fewer nodes steps may take as long as the planner said") {
  WatchBaseline shrunk;
  shrunk.step_factor = 1.7;  // limit 1.2 x 1.7 = 2.04
  CHECK(signals_of(made_up_run(34, half_speed), shrunk).empty());
  shrunk.step_factor = 1.6;
  CHECK(signals_of(made_up_run(34, half_speed), shrunk) == Names{"slow steps"});
}

TEST_CASE("MFU is held against the run's best, and the step time against the plan where there is one") {
  const auto falls = [](TrainingStep& s) { s.mfu = s.step > 30 ? 0.3 : 0.4; };
  CHECK(signals_of(made_up_run(34, falls)) == Names{"low MFU"});
  CHECK(signals_of(made_up_run(34)).empty());  // no MFU on a CPU
  WatchBaseline plan;
  plan.plan_step_s = 0.6;  // 1.5 x 0.6 < 1
  CHECK(signals_of(made_up_run(34), plan) == Names{"slower than the plan"});
  plan.plan_step_s = 0.7;
  CHECK(signals_of(made_up_run(34), plan).empty());
}

TEST_CASE("a loss that jumps or is no number, and gradients that jump") {
  const auto loss = [](double value) {
    return made_up_run(34, [value](TrainingStep& s) {
      if (s.step > 30) s.loss = value;
    });
  };
  CHECK(signals_of(loss(30)) == Names{"loss jump"});
  CHECK(signals_of(loss(kNaN)) == Names{"loss jump"});
  CHECK(signals_of(loss(5.1)) == Names{"loss jump"});  // 0.3 nats above the median of steps 23 to 30, 4.735
  CHECK(signals_of(loss(5.0)).empty());
  CHECK(signals_of(made_up_run(34, [](TrainingStep& s) { s.grad_norm = s.step > 30 ? 6 : 1; })) ==
        Names{"gradient jump"});
  const WatchRules rules = short_rules();
  const TrainingObservation lost = loss(kNaN);
  const Diagnosis d = diagnosis_of(lost, RunSignals(lost, rules, {}).now(), rules, {});
  CHECK(d.ailment == Ailment::silent_failure);
  CHECK_THAT(d.reason, Contains("loss is nan since step 31"));
}

TEST_CASE("silence: ten usual steps, a minute at least, ten before the first step, and none once the run has ended") {
  TrainingObservation run = made_up_run(34);
  run.now_unix_s += 59;
  CHECK(signals_of(run).empty());
  run.now_unix_s += 2;
  CHECK(signals_of(run) == Names{"silence"});
  run.ended = true;
  CHECK(signals_of(run).empty());
  TrainingObservation long_steps = made_up_run(34, [](TrainingStep& s) { s.step_s *= 20; });
  long_steps.now_unix_s += 199;
  CHECK(signals_of(long_steps).empty());
  long_steps.now_unix_s += 5;
  CHECK(signals_of(long_steps) == Names{"silence"});
  TrainingObservation none;
  none.last_sign_unix_s = 1e9, none.now_unix_s = 1e9 + 599;
  CHECK(signals_of(none).empty());
  none.now_unix_s += 2;
  CHECK(signals_of(none) == Names{"silence"});
}

TEST_CASE("whether it helped is judged by the steps since the start, against the limit of before") {
  const WatchRules rules = short_rules();
  const TrainingObservation sick = made_up_run(34, half_speed);
  const WatchSignal signal = RunSignals(sick, rules, {}).now().at(0);
  const auto recovered = [&](double factor, int since) {
    TrainingObservation run = sick;
    for (int i = 0; i < 6; ++i) {
      TrainingStep next = run.steps.back();
      ++next.step, next.step_s = factor, next.unix_s += factor;
      run.steps.push_back(next);
    }
    return RunSignals(run, rules, {}).recovered(signal, run.steps[static_cast<std::size_t>(since)].unix_s, 4);
  };
  CHECK(recovered(1, 33) == std::optional(true));
  CHECK(recovered(2, 33) == std::optional(false));
  CHECK_FALSE(recovered(1, 36));  // three steps since
}

TEST_CASE("what each option loses is its closed form, and UNKNOWN without its inputs") {
  LossFigures f{.restart_s = 60, .repair_s = 1000, .remaining_s = 3600, .slow_factor = 1.5, .shrunk_factor = 1.25};
  f.spare = true;
  const auto all = alternatives(f);
  REQUIRE(all.size() == 4);
  CHECK(*all[0].lost_s == Approx(1800));                                           // R (a - 1)
  CHECK(*all[1].lost_s == Approx(60));                                             // r
  CHECK(*all[2].lost_s == Approx(60 + 3600 * 0.25));                               // r + R (f - 1)
  CHECK_THAT(all[2].note, Contains("5.33 min where a human lets it grow again"));  // 2 r + t (1 - 1/f)
  CHECK(*all[3].lost_s == Approx(1060));
  CHECK(*all[1].goodput == Approx(3600.0 / 3660));
  CHECK(cheapest_option(all) == RecoveryOption::spare);
  f.remaining_s = 200;
  CHECK(*alternatives(f)[2].lost_s == Approx(60 + 50));
  f.spare = false;
  CHECK(cheapest_option(alternatives(f)) == RecoveryOption::go_on);  // 100 s
  f.repair_s.reset();
  CHECK_THAT(alternatives(f)[2].note, Contains("pays against waiting for a repair that takes longer than 50.0 s"));
  f.remaining_s.reset();
  const auto some = alternatives(f);
  CHECK_FALSE(some[0].lost_s);
  CHECK_THAT(some[0].note,
             Contains("UNKNOWN without remaining time; pays against a spare with less than 2.00 min left"));
  CHECK_FALSE(some[2].lost_s);
  CHECK_THAT(some[2].note, Contains("UNKNOWN without remaining time"));
  CHECK_FALSE(cheapest_option(alternatives({})));
}

TEST_CASE("the most GPUs on whole nodes that the batch divides among") {
  CHECK(usable_gpus(383 * 8, 8, 6144) == 2048);
  CHECK(usable_gpus(384 * 8, 8, 6144) == 3072);
  CHECK(usable_gpus(3 * 8, 8, 64) == 16);
  CHECK(usable_gpus(8, 8, 12) == 6);  // part of a node
  CHECK(usable_gpus(0, 8, 64) == 0);
}

TEST_CASE("drift goes to communication, routing and input by what is known of them, and the rest is computation") {
  PlannedRun plan;
  plan.step_s = 10, plan.low_s = 9, plan.high_s = 11, plan.exposed_communication_s = 1, plan.peak_bytes = 50;
  plan.goodput = 0.98, plan.imbalance = 1.1, plan.experts_s = 4, plan.load_batch_s = 0;
  ObservedRun run;
  run.step_s = 14, run.exposed_communication_s = 2.5, run.peak_bytes = 60, run.imbalance = 1.375;
  run.load_batch_s = 0.25, run.goodput = 0.9;
  PlanDrift drift = plan_drift(plan, run);
  CHECK(drift.parts.step_s == Approx(4));
  CHECK(*drift.parts.network_s == Approx(1.5));
  CHECK(*drift.parts.routing_s == Approx(1));  // 4 x (1.375 / 1.1 - 1)
  CHECK(*drift.parts.input_s == Approx(0.25));
  CHECK(drift.parts.computation_s == Approx(1.25));
  CHECK(drift.parts.faults_s == Approx(14 * (1 / 0.9 - 1) - 10 * (1 / 0.98 - 1)));
  CHECK_FALSE(drift.inside);
  run.imbalance.reset(), run.load_batch_s.reset();
  drift = plan_drift(plan, run);
  CHECK_FALSE(drift.parts.routing_s);
  CHECK(drift.parts.computation_s == Approx(2.5));
  CHECK(to_json(drift)["behind_s"]["routing"] == "UNKNOWN");
}

TEST_CASE("goodput is the time of the steps that count over the wall time") {
  TrainingObservation run = made_up_run(10, [](TrainingStep& s) { s.step_s = 1; });
  for (std::size_t i = 5; i < 10; ++i) run.steps[i].unix_s += 10;  // a restart between steps 5 and 6
  const TempDirectory folder;
  CHECK(observe_run(run, folder.path(), 4)->goodput == Approx(10.0 / 20));
  CHECK_FALSE(observe_run(run, folder.path(), 11));
}

TEST_CASE("rules and hooks refuse what makes no sense") {
  const TempDirectory folder;
  const std::string good = read_bytes("configs/watch/default.yaml");
  const auto rules = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    write_bytes(folder / "rules.yaml", text);
    return usage_error([&] { read_watch_rules((folder / "rules.yaml").string()); });
  };
  CHECK(rules("every", "every") == "no error");
  CHECK_THAT(rules("metric: mfu", "metric: mgu"), Contains("allowed mfu, tokens_per_s"));
  CHECK_THAT(rules("below: 0.85", "below: 0.85, above: 1"), Contains("both of above and below"));
  CHECK_THAT(rules("below: 0.85, of: best", "below: 0.85, of: last"),
             Contains("allowed value, best, recent, before, plan"));
  CHECK_THAT(rules("above: 0.3, deviations: 8, of: before", "above: 5, of: recent"),
             Contains("found 'recent' for loss, allowed before, value"));
  CHECK_THAT(rules("above: 10, of: recent", "above: 10, of: plan"), Contains("for silence, allowed recent, value"));
  CHECK_THAT(rules("above: 1.2, of: best", "above: 1.2, of: before"), Contains("allowed best, recent, plan, value"));
  CHECK_THAT(rules("above: 0.3, deviations", "below: 0.3, deviations"), Contains("needs above"));
  CHECK_THAT(rules("deviations: 8, of: before, level: 32, within: 1000", "of: before, level: 32, within: 1000"),
             Contains("deviations"));
  CHECK_THAT(rules("level: 32, within: 1000", "level: 3, within: 1000"), Contains("level"));
  CHECK_THAT(rules("above: 10,", "below: 10,"), Contains("needs above"));
  CHECK_THAT(rules("at_least: 60s", "at_least: 0s"), Contains("above 0"));
  CHECK_THAT(rules("name: slow steps", "name: low MFU"), Contains("two of the name"));
  CHECK_THAT(rules("most_excluded: 0.25", "most_excluded: 25"), Contains("most_excluded"));
  CHECK_THAT(rules("restarts: 3", "restart: 3"), Contains("restart"));

  const auto hooks = [&](const std::string& kind, const std::string& command) {
    std::string text;
    for (const char* name : {"save", "stop", "sweep", "cordon", "uncordon", "start"})
      text += fmt::format("{}: {{command: {}, timeout: 1m}}\n", name,
                          name == kind                   ? command
                          : std::string(name) == "sweep" ? "[x, \"{output}\"]"
                                                         : "[x]");
    write_bytes(folder / "hooks.yaml", text);
    return usage_error([&] { read_watch_hooks((folder / "hooks.yaml").string()); });
  };
  CHECK(hooks("cordon", "[x, \"nodename={node}\", \"reason={reason}\"]") == "no error");
  CHECK_THAT(hooks("save", "[x, \"{node}\"]"), Contains("found {node}, allowed for save: {reason}, {run}"));
  CHECK_THAT(hooks("cordon", "[\"{node}\"]"), Contains("as the program"));
  CHECK_THAT(hooks("cordon", "[/bin/sh, -c, \"cordon {node}\"]"), Contains("where /bin/sh would have a shell read it"));
  CHECK_THAT(hooks("cordon", "[env, bash, -ec, \"cordon {node}\"]"), Contains("a shell read it"));
  CHECK_THAT(hooks("cordon", "[ssh, head, scontrol, \"{node}\"]"), Contains("a shell read it"));
  for (const char* reads :
       {"sh, -ce, \"cordon {node}\"", "bash, -c, -x, \"cordon {node}\"", "sh, -o, errexit, -c, \"cordon {node}\"",
        "python3.11, -c, \"cordon('{node}')\"", "perl, -e, \"cordon {node}\"", "su, admin, -c, \"cordon {node}\"",
        "pdsh, -w, head, \"{node}\"", "sh, \"{node}\"", "timeout, \"9\", dash, -ec, \"{node}\""})
    CHECK_THAT(hooks("cordon", fmt::format("[{}]", reads)), Contains("a shell read it"));
  CHECK(hooks("cordon", "[python3, cordon.py, \"{node}\"]") == "no error");
  CHECK(hooks("cordon", "[bash, -o, pipefail, -ec, \"cordon \\\"$1\\\"\", sh, \"{node}\"]") == "no error");
  CHECK(hooks("cordon", "[sh, -c, \"cordon \\\"$1\\\"\", sh, \"{node}\"]") == "no error");
  CHECK_THAT(hooks("sweep", "[x]"), Contains("no {output}"));
  CHECK_THAT(hooks("stop", "[]"), Contains("no program"));
  CHECK_THAT(hooks("start", "[x, \"{lay_out}\"]"), Contains("no error"));  // braces of its own, as in JSON or awk
  for (const char* preset : {"hooks-slurm", "hooks-kubernetes", "hooks-local"}) read_watch_hooks(preset);
}

TEST_CASE("placeholders are filled in once, whatever stands in their values") {
  const HookCommand command{{"x", "{run}/{node}", "{reason}", "{layout}", "{a b}"}, 1};
  HookValues values{.run = "/r", .node = "{reason}", .reason = "$(reboot); `x` \"{node}\"", .layout = ""};
  CHECK(filled_in(command, values) ==
        std::vector<std::string>{"x", "/r/{reason}", "$(reboot); `x` \"{node}\"", "", "{a b}"});
}
