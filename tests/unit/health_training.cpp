// The signals of a training run: what each mixture of them is called.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/health/judge.hpp"
#include "tests/fixtures/synthetic_fleet.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Matchers::Contains;

namespace {

/// 40 steps of 1 s, of which 0.2 s wait for collectives; from step 31 on `change` has its way.
template <typename Change>
TrainingObservation run(const Change& change) {
  TrainingObservation out;
  double now = 1e9;
  for (int i = 1; i <= 40; ++i) {
    TrainingStep s{.step = i,
                   .step_s = 1 + 0.01 * (i % 3),
                   .loss = 5 - 0.05 * i,
                   .exposed_communication_s = 0.2,
                   .aux_loss = 0.010};
    if (i > 30) change(s);
    s.unix_s = now += s.step_s;
    out.steps.push_back(s);
  }
  out.now_unix_s = now + 1;
  out.last_sign_unix_s = now;
  return out;
}

TrainingObservation slow(double factor) {
  return run([=](TrainingStep& s) { s.step_s *= factor; });
}

}  // namespace

TEST_CASE("a run at its own pace is fine, whatever the devices say") {
  const Diagnosis d = diagnose(run([](TrainingStep&) {}));
  CHECK(d.ailment == Ailment::fine);
  CHECK(d.relative_pace > 0.98);
  CHECK(d.confidence == 1);
  CHECK(diagnose(slow(1.1)).ailment == Ailment::fine);  // above the threshold of 0.8
}

TEST_CASE("slower steps: devices busy, waiting, idle, or nobody knows") {
  TrainingObservation t = slow(2);
  CHECK(diagnose(t).ailment == Ailment::undecided);
  CHECK_THAT(diagnose(t).action, Contains("--dcgm"));
  t.utilisation = 0.97;
  t.network_Bps = 1e10;
  const Diagnosis busy = diagnose(t);
  CHECK(busy.ailment == Ailment::slow_hardware);
  CHECK_THAT(busy.reason, Contains("97 % busy"));
  CHECK(busy.confidence == 1);
  CHECK(busy.relative_pace == Approx(0.5).epsilon(0.02));
  t.utilisation = 0.1;
  CHECK(diagnose(t).ailment == Ailment::starved_input);
  t.utilisation = 0.5;
  CHECK(diagnose(t).ailment == Ailment::undecided);

  TrainingObservation waiting = run([](TrainingStep& s) { s.step_s += 1, s.exposed_communication_s = 1.1; });
  const Diagnosis found = diagnose(waiting);
  CHECK(found.ailment == Ailment::slow_hardware);
  CHECK_THAT(found.reason, Contains("90 % of the difference waiting for collectives"));
  CHECK(found.confidence == Approx(0.5));  // steps and balance known, utilisation and network not
}

TEST_CASE("an imbalanced router is no hardware fault, though ranks wait for each other") {
  TrainingObservation t =
      run([](TrainingStep& s) { s.step_s += 1, s.exposed_communication_s = 1.1, s.aux_loss = 0.016; });
  t.utilisation = 0.95;
  CHECK(diagnose(t).ailment == Ailment::imbalanced_router);
  CHECK_THAT(diagnose(t).action, Contains("cordon nobody"));

  test::SyntheticFleet fleet({.nodes = 16, .rails = 2}, 1);
  fleet.fleet.training = t;
  const HealthVerdict verdict = judge(fleet.fleet);
  CHECK(verdict.count(NodeState::healthy) == 16);
  CHECK(verdict.exit_status() == 0);
  CHECK(verdict.training->ailment == Ailment::imbalanced_router);
}

TEST_CASE("loads that are counted explain no more than they grew") {
  const auto with = [](double imbalance) {
    return run([=](TrainingStep& s) { s.step_s *= 2, s.expert_imbalance = imbalance; });
  };
  TrainingObservation t = with(2.2);
  for (TrainingStep& s : t.steps)
    if (!s.expert_imbalance) s.expert_imbalance = 1.1;
  CHECK(diagnose(t).ailment == Ailment::imbalanced_router);
  for (TrainingStep& s : t.steps)
    if (*s.expert_imbalance > 2) s.expert_imbalance = 1.1 * 1.3;
  t.utilisation = 0.97;
  CHECK(diagnose(t).ailment == Ailment::slow_hardware);  // 30 % more cannot double a step
}

TEST_CASE("a stall: hung devices, a waiting host, or work that goes on") {
  TrainingObservation t = run([](TrainingStep&) {});
  t.now_unix_s += 300;
  const Diagnosis blind = diagnose(t);
  CHECK(blind.ailment == Ailment::silent_failure);
  CHECK(blind.confidence == Approx(1.0 / 3));
  t.utilisation = 1;
  t.network_Bps = 1000;
  CHECK(diagnose(t).ailment == Ailment::silent_failure);
  CHECK(diagnose(t).confidence == 1);
  CHECK_THAT(diagnose(t).reason, Contains("the network is silent") && Contains("hung collective"));
  t.utilisation = 0.02;
  CHECK_THAT(diagnose(t).reason, Contains("the host waits"));
  t.network_Bps = 5e9;
  CHECK(diagnose(t).ailment == Ailment::undecided);
  t.ended = true;
  CHECK(diagnose(t).ailment == Ailment::fine);
  TrainingObservation early;
  early.last_sign_unix_s = 1000;
  early.now_unix_s = 1500;
  CHECK(diagnose(early).ailment == Ailment::undecided);  // start-up takes minutes
  early.now_unix_s = 1700;
  CHECK(diagnose(early).ailment == Ailment::silent_failure);
}

TEST_CASE("a loss that is lost needs no other signal") {
  CHECK_THAT(diagnose(run([](TrainingStep& s) { s.loss = s.step == 35 ? NAN : s.loss; })).reason,
             Contains("no number since step 35"));
  CHECK_THAT(diagnose(run([](TrainingStep& s) { s.loss = 2.5; })).reason, Contains("to the last bit"));
  const Diagnosis jumped = diagnose(run([](TrainingStep& s) { s.loss += 0.9; }));  // falls by 0.05 a step, as before
  CHECK(jumped.ailment == Ailment::silent_failure);
  CHECK_THAT(jumped.reason, Contains("rose from"));
  CHECK(jumped.confidence == 1);
  CHECK(diagnose(run([](TrainingStep& s) { s.loss += s.step == 37 ? 0.9 : 0; })).ailment == Ailment::fine);
  CHECK(diagnose(run([](TrainingStep& s) { s.loss += 0.6; })).ailment == Ailment::fine);  // 0.1 above its lowest
}

TEST_CASE("MFU of the metrics is what the threshold means, where they have it") {
  TrainingObservation t = run([](TrainingStep& s) { s.mfu = 0.4; });
  DiagnosisOptions options;
  options.mfu_below = 0.3;
  CHECK(diagnose(t, options).ailment == Ailment::fine);
  options.mfu_below = 0.5;
  CHECK(diagnose(t, options).ailment == Ailment::undecided);  // never faster
  t.utilisation = 0.1;
  CHECK(diagnose(t, options).ailment == Ailment::starved_input);
  CHECK_THAT(test::usage_error([&] { diagnose(t, {.mfu_below = 1.5}); }), Contains("threshold of 1.5"));
  CHECK_THAT(test::usage_error([&] { diagnose(t, {.window = 1}); }), Contains("window of 1"));
}

TEST_CASE("metrics as the trainer writes them are read, a half-written line is left") {
  const test::TempDirectory folder;
  const std::string line =
      R"({"aux_loss":0.0111,"exposed_communication_s":0.1,"grad_norm":11.2,"loss":7.6,"lr":0.0001,"samples":[1,2],"step":1,"step_s":0.29,"tokens_per_s":3499.8,"unix_s":1795273106.5})";
  test::write_bytes(
      folder / "metrics.jsonl",
      line + "\n\n" + R"({"step":2,"step_s":0.3,"loss":null,"unix_s":1795273107})" + "\n" + R"({"step":3,"st)");
  const TrainingObservation t = read_training(folder.path(), 1795273108);
  REQUIRE(t.steps.size() == 2);
  CHECK(t.steps[0].aux_loss == 0.0111);
  CHECK(std::isnan(t.steps[1].loss));
  CHECK(t.last_sign_unix_s == 1795273107);
  CHECK_FALSE(t.ended);
  test::write_bytes(folder / "summary.json", "{}");
  CHECK(read_training(folder.path(), 0).ended);
  const nlohmann::json document = to_json(t);
  CHECK(to_json(training_from_json(JsonReader(document, "t"))) == document);

  const auto refused = [&](const std::string& bytes, const std::string& why) {
    test::write_bytes(folder / "metrics.jsonl", bytes);
    CHECK_THAT(test::usage_error([&] { read_training(folder.path(), 0); }), Contains(why));
  };
  refused("hello\n", "metrics.jsonl:1");
  refused(R"({"step":1,"step_s":0.3,"loss":1})"
          "\n",
          "unix_s");
  refused(R"({"step":1,"step_s":0,"loss":1,"unix_s":1})"
          "\n",
          "seconds above 0");
  refused(R"({"step":2,"step_s":1,"loss":1,"unix_s":1})"
          "\n"
          R"({"step":2,"step_s":1,"loss":1,"unix_s":1})"
          "\n",
          "step 2 behind step 2");
  CHECK_THAT(test::usage_error([&] { read_training(folder / "none", 0); }), Contains("cannot be read"));
}

TEST_CASE("a step at which the run diverged is known until another one is done") {
  const test::TempDirectory folder;
  test::write_bytes(folder / "metrics.jsonl", R"({"step":4,"step_s":0.3,"loss":1,"unix_s":100})"
                                              "\n");
  CHECK_FALSE(read_training(folder.path(), 200).diverged);
  test::write_bytes(folder / "diverged.json", R"({"step": 5, "times": 2, "unix_s": 101})");
  const auto found = read_training(folder.path(), 200).diverged;
  REQUIRE(found);
  CHECK(found->step == 5);
  CHECK(found->times == 2);
  test::write_bytes(folder / "diverged.json", R"({"step": 5, "times": 2, "unix_s": 99})");
  CHECK_FALSE(read_training(folder.path(), 200).diverged);
  test::write_bytes(folder / "diverged.json", R"({"step": 5, "times": 2, "unix_s": 101})");
  for (const auto& [connected, known] : {std::pair{100.5, true}, {150.0, false}}) {  // started since: it may pass now
    test::write_bytes(folder / "generations.jsonl", fmt::format("{{\"connected_unix_s\": {}}}\n", connected));
    CHECK(read_training(folder.path(), 200).diverged.has_value() == known);
  }
  test::write_bytes(folder / "diverged.json", R"({"step": 5})");
  CHECK_THAT(test::usage_error([&] { read_training(folder.path(), 200); }), Contains("diverged.json"));
}

TEST_CASE("a follower reads what was added, and all of a file that was cut back") {
  const test::TempDirectory folder;
  const auto line = [](int step, const std::string& loss) {
    return fmt::format("{{\"step\": {}, \"unix_s\": {}, \"step_s\": 1, \"loss\": {}, \"grad_norm\": null}}\n", step,
                       step, loss);
  };
  const auto add = [&](const std::string& text) { std::ofstream(folder / "metrics.jsonl", std::ios::app) << text; };
  TrainingFollower follower(folder.path());
  CHECK_THROWS_WITH(follower.look(0), Contains("metrics.jsonl"));
  add(line(1, "5") + line(2, "4") + line(3, "3").substr(0, 20));
  CHECK(follower.look(0).steps.size() == 2);
  add(line(3, "3").substr(20) + line(4, "null"));
  REQUIRE(follower.look(0).steps.size() == 4);
  CHECK(follower.look(0).steps[2].loss == 3);
  CHECK(std::isnan(follower.look(0).steps[3].loss));
  CHECK(std::isnan(*follower.look(0).steps[3].grad_norm));
  // The trainer cuts it back by a file that takes its place, here as long as the old one and longer.
  test::write_bytes(folder / "new", line(1, "5") + line(2, "7") + line(3, "8") + line(4, "9.55") + line(5, "1"));
  std::filesystem::rename(folder / "new", folder / "metrics.jsonl");
  REQUIRE(follower.look(0).steps.size() == 5);
  CHECK(follower.look(0).steps[1].loss == 7);
  add("broken\n");
  CHECK_THROWS_WITH(follower.look(0), Contains("metrics.jsonl:6"));
  CHECK_THROWS_WITH(follower.look(0), Contains("metrics.jsonl:6"));
}
