// The recovery drill on real processes; and drills that must fail, do.
#include "planner/experiments/drill.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>

#include "planner/experiments/drill_invariants.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fixtures/windtunnel.hpp"
#include "trainer/process/trainer_process.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// A drill in which something stands between the drill and the trainer; `script` sees the arguments.
DrillCase tampered(const std::string& name, const std::string& script) {
  const auto program = scratch(name + ".sh");
  const std::string real = trainer_program().string();
  write_bytes(program, "#!/bin/sh\nreal=" + real + "\n" + script);
  chmod(program.c_str(), 0755);
  setenv("WINDTUNNEL_TRAIN", program.c_str(), 1);
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 4, run.save = true, run.save_interval = 2;
  const Scenario faults = read_scenario_file(fault_file(name, {killed(1, "step: 4, at: optimizer, saved: true")}));
  const DrillResult result =
      run_drill({{faults, run}}, scratch(name), [](const std::string& line) { UNSCOPED_INFO(line); });
  setenv("WINDTUNNEL_TRAIN", real.c_str(), 1);
  CHECK(result.passed() == result.cases.at(0).passed());
  return result.cases.at(0);
}

bool all_equal(const DrillCase& c) {
  return c.losses_equal && c.samples_equal && c.parameters_equal && c.optimizer_equal;
}

const std::string kFaulted = "if [ \"$5\" = --faults ]; then ";

}  // namespace

TEST_CASE("untouched, the drill through a script passes: what follows fails for its own reason") {
  const DrillCase c = tampered("untouched", "exec $real \"$@\"\n");
  CHECK((c.passed() && all_equal(c) && c.restarts.size() == 1 && c.steps_lost == 1));
  CHECK(c.proofs == std::vector<std::string>{"kill of rank 1 at optimizer of step 4"});
  CHECK((c.restarts[0].rank == 1 && c.restarts[0].cause == "signal 9 (Killed)" && c.restarts[0].resumed_after == 2));
  REQUIRE(c.restarts[0].phases);
  CHECK((c.restarts[0].phases->detect_s && c.restarts[0].phases->recovery_s() > 0));
}

TEST_CASE("a fault that is never injected fails the drill, though all is equal") {
  const DrillCase c = tampered("never", "exec $real train \"$2\" -o \"$4\"\n");
  CHECK_FALSE(c.passed());
  CHECK((all_equal(c) && c.restarts.empty() && c.proofs.empty()));
  CHECK(c.differences == std::vector<std::string>{"kill of rank 1 at optimizer of step 4 was never injected"});
}

TEST_CASE("a fault that is to change numbers unnoticed, and changed none, fails the drill") {
  const auto file = scratch("changes-nothing.yaml");
  write_bytes(file, "name: changes-nothing\nrun: tiny-moe\nevents:\n  - {" + killed(1, "step: 4, at: optimizer") +
                        "}\nexpect: {state: changed}\n");
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 4, run.save = true, run.save_interval = 2;
  const DrillResult result = run_drill({{read_scenario_file(file), run}}, scratch("changes-nothing"),
                                       [](const std::string& line) { UNSCOPED_INFO(line); });
  REQUIRE(result.cases.size() == 1);
  CHECK(result.cases[0].differences == std::vector<std::string>{"the state at the end is that of the undisturbed run: "
                                                                "the fault changed nothing"});
}

TEST_CASE("a fault that is said to be injected, and ended nothing, fails the drill") {
  const DrillCase c = tampered("said", kFaulted + R"(
  echo '{"event":0,"generation":0,"rank":1,"node":1,"step":4,"at":"optimizer","kind":"kill","unix_s":1,"proof":{}}' \
    > "$4/strikes.jsonl"
  exec $real train "$2" -o "$4"; fi
exec $real "$@"
)");
  CHECK_FALSE(c.passed());
  CHECK(c.differences == std::vector<std::string>{"kill of rank 1 at optimizer of step 4: not proved: no rank ended"});
}

TEST_CASE("a recovered run with other numbers fails the drill") {
  // The faulted run gets another seed: other losses and state, the same samples.
  const DrillCase c = tampered("other-seed", kFaulted + R"(sed 's/^seed: .*/seed: 99/' "$2" > "$4/other.yaml"
  exec $real train "$4/other.yaml" -o "$4" --faults "$6"; fi
exec $real "$@"
)");
  CHECK_FALSE(c.passed());
  CHECK((c.samples_equal && !c.losses_equal && !c.parameters_equal && !c.optimizer_equal));
}

TEST_CASE("a recovered run on other samples fails the drill") {
  const DrillCase c =
      tampered("other-samples", kFaulted + R"(sed 's/shuffle_seed: .*/shuffle_seed: 5/' "$2" > "$4/other.yaml"
  exec $real train "$4/other.yaml" -o "$4" --faults "$6"; fi
exec $real "$@"
)");
  CHECK_FALSE(c.passed());
  CHECK_FALSE(c.samples_equal);
}

TEST_CASE("a step that was another one when it was done first fails the drill, and so does what is left behind") {
  const DrillCase c = tampered("after", kFaulted + R"($real "$@"
  sed -i 's/"loss":[0-9.]*/"loss":1.5/' "$4/replayed.jsonl"
  mkdir "$4/checkpoints/step-00000008.partial"
  sh -c 'sleep 30' "$4" &
  exit 0; fi
exec $real "$@"
)");
  CHECK_FALSE(c.passed());
  CHECK(all_equal(c));
  REQUIRE(c.differences.size() == 3);
  CHECK_THAT(c.differences[0], Catch::Contains("process") && Catch::Contains("left behind"));
  CHECK(c.differences[1] == "checkpoints/step-00000008.partial is left behind");
  CHECK_THAT(c.differences[2], Catch::Contains("step 3, done again: loss is"));
}

TEST_CASE("everything that a drill writes lies in its output folder, wherever it is called") {
  const TempDirectory folder;
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 4, run.save = true, run.save_interval = 2, run.dataset.use_folder("out/data/seq48");  // not there
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  for (const char* name : {"one", "two"})
    write_bytes(folder / (std::string(name) + ".yaml"),
                "name: " + std::string(name) + "\nrun: run.yaml\nevents:\n  - {" + killed(1, "step: 4") + "}\n");
  const std::string here = "cd '" + folder.path().string() + "' &&";
  const Ended ended = windtunnel("drill one.yaml two.yaml -o here", here);
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("Recovery was exact") && Catch::Contains("first step [s]"));
  CHECK(folder.entries() == 4);  // three files and the output folder
  CHECK(std::filesystem::exists(folder / "here/data-seq48/index.json"));
  CHECK((std::filesystem::exists(folder / "here/undisturbed-1") &&
         !std::filesystem::exists(folder / "here/undisturbed-2")));
  CHECK_THAT(ended.said, Catch::Contains("Predicted and measured"));
  const std::string measured = "--recovery here/recovery/" + run.name + ".yaml";
  const Ended simulated = windtunnel("drill one.yaml --simulate --json " + measured, here);
  INFO(simulated.said);
  REQUIRE(simulated.status == 0);
  const auto strikes = nlohmann::json::parse(simulated.said).at(0).at("strikes");
  REQUIRE(strikes.size() == 1);
  CHECK((strikes[0].at("restarts") == 1 && strikes[0].at("start_s") > 0 && strikes[0].at("replay_s") > 0));
  const Ended another = windtunnel("drill kill --simulate " + measured, here);
  CHECK(another.status == 2);
  CHECK_THAT(another.said, Catch::Contains("found run tiny-moe on 4 ranks, recoveries were measured of"));
  CHECK(windtunnel("drill one.yaml " + measured, here).status == 2);  // real ranks take their own time
  const Ended twice = windtunnel("drill one.yaml one.yaml -o here", here);
  CHECK(twice.status == 2);
  CHECK_THAT(twice.said, Catch::Contains("found 'one' twice"));
}

TEST_CASE("drawn scenarios pass, and leave nothing but their files") {
  const TempDirectory folder;
  const std::string here = "cd '" + folder.path().string() + "' &&";
  const Ended ended = windtunnel("drill random --count 4 --first 20 --seed 1 -o drawn", here);
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("Drawn scenarios by kind of fault") && Catch::Contains("4 scenarios"));
  CHECK(std::filesystem::exists(folder / "drawn/random-1-23.yaml"));
  CHECK(!std::filesystem::exists(folder / "drawn/case-1"));
}

TEST_CASE("a trainer that does not end is killed after its limit; one that does is not") {
  const auto program = scratch("hangs.sh"), log = scratch("hangs.txt");
  const std::string real = trainer_program().string();
  write_bytes(program, "#!/bin/sh\ntest $1 = quick && exit 7\necho $$\nexec sleep 100\n");
  chmod(program.c_str(), 0755);
  setenv("WINDTUNNEL_TRAIN", program.c_str(), 1);
  CHECK(try_trainer({"quick"}, log, 60) == 7);
  CHECK_FALSE(try_trainer({"slow"}, log, 10));
  setenv("WINDTUNNEL_TRAIN", real.c_str(), 1);
  CHECK(kill(std::stoi(read_bytes(log)), 0) != 0);
}

TEST_CASE("a drill that is killed takes its trainer and the ranks with it") {
  const std::filesystem::path folder = scratch("killed-drill"), place = folder / "out" / "undisturbed-1";
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 5000, run.dataset.use_folder(licence_tokens(run.seq));
  std::filesystem::create_directories(folder);
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  write_bytes(folder / "one.yaml", "name: one\nrun: run.yaml\nevents:\n  - {" + killed(1, "step: 4") + "}\n");
  const pid_t drill = fork();
  if (drill == 0) {
    std::filesystem::current_path(folder);
    execl(WT_PROGRAM, WT_PROGRAM, "drill", "one.yaml", "-o", "out", nullptr);
    _exit(1);
  }
  wait_for_step(place, 1);
  DrillCase before, left;
  check_nothing_left(place, before);
  CHECK(!before.differences.empty());  // it sees the processes that are there
  kill(drill, SIGKILL);
  waitpid(drill, nullptr, 0);
  check_nothing_left(place, left);
  CHECK(left.differences == std::vector<std::string>());
}

TEST_CASE("the same faults twice, the same decisions") {
  std::vector<DrillInput> inputs;
  for (const char* name : {"spare", "kill-in-reload"})
    for (const char* time : {"-first", "-second"}) {
      DrillInput input = read_drill_input(name);
      input.scenario.name += time;
      input.run.dataset.use_folder(licence_tokens(input.run.seq));
      inputs.push_back(std::move(input));
    }
  const DrillResult result = run_drill(inputs, scratch("twice"), [](const std::string& line) { UNSCOPED_INFO(line); });
  REQUIRE(result.passed());
  const auto decisions = [](const DrillCase& c) {
    std::vector<std::tuple<int, std::vector<std::int64_t>, std::string, std::string, std::int64_t, std::string>> out;
    for (const DrillRestart& r : c.restarts)
      out.emplace_back(r.generation, r.blamed, r.cause, r.action, r.resumed_after,
                       r.level);  // who ended first is chance
    return out;
  };
  for (std::size_t i = 0; i < inputs.size(); i += 2) {
    CHECK(decisions(result.cases[i]) == decisions(result.cases[i + 1]));
    CHECK(result.cases[i].proofs == result.cases[i + 1].proofs);
    CHECK(result.cases[i].steps_lost == result.cases[i + 1].steps_lost);
  }
}
