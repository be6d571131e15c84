// The recovery drill on real processes; and drills that must fail, do.
#include "planner/experiments/drill.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "planner/experiments/trainer_process.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/trainer_fixture.hpp"
#include "tests/support/windtunnel.hpp"

using namespace wt;
using namespace wt::test;

namespace {

RunSpec drill_run() {
  RunSpec run = read_run("configs/runs/tiny-moe.yaml");
  run.data = licence_tokens(run.seq);
  return run;
}

DrillResult drill(const FaultSpec& faults, const RunSpec& run, const std::string& folder) {
  return run_drill(faults, run, scratch(folder), [](const std::string& line) { UNSCOPED_INFO(line); });
}

/// A drill of one case in which something stands between the drill and the trainer; `script` sees the arguments.
DrillCase tampered(const std::string& name, const std::string& script) {
  const auto program = scratch(name + ".sh");
  const std::string real = trainer_program().string();
  write_bytes(program, "#!/bin/sh\nreal=" + real + "\n" + script);
  chmod(program.c_str(), 0755);
  setenv("WINDTUNNEL_TRAIN", program.c_str(), 1);
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 4, run.save = true, run.save_interval = 2;
  FaultSpec faults;
  faults.name = name;
  faults.cases = {parse_inject("rank=1,step=3,at=optimizer")};
  const DrillResult result = drill(faults, run, name);
  setenv("WINDTUNNEL_TRAIN", real.c_str(), 1);
  CHECK(result.passed() == result.cases.at(0).passed());
  return result.cases.at(0);
}

}  // namespace

TEST_CASE(
    "a rank killed in compute, before the optimizer and in a checkpoint: the run ends as if nothing had happened") {
  const DrillResult result = drill(read_fault_spec("kill-rank"), drill_run(), "drill");
  REQUIRE(result.cases.size() == 3);
  CHECK(result.passed());
  const std::int64_t done[] = {6, 5, 8};
  for (std::size_t i = 0; i < 3; ++i) {
    const DrillCase& c = result.cases[i];
    INFO(c.name << ": " << c.cause);
    CHECK((c.passed() && c.differences.empty() && c.restarts == 1 && c.recovery_s > 0));
    // The save of step 4 may still be under way when the rank dies. That of step 8 waited for it, and training went on
    // beside it.
    CHECK((c.resumed_after == 4 || (i < 2 && c.resumed_after == 0)));
    CHECK(c.replayed + c.resumed_after >= done[i]);
    CHECK(c.replayed + c.resumed_after <= done[i] + (i == 2 ? 4 : 0));
    CHECK(c.cause == fmt::format("rank {} ended with signal 9 (Killed)", i == 1 ? 0 : 1));
    CHECK(leftovers(scratch("drill") / fmt::format("case-{}", i + 1)).empty());
  }
}

TEST_CASE("untouched, the drill through a script passes: what follows fails for its own reason") {
  CHECK(tampered("untouched", "exec $real \"$@\"\n").passed());
}

TEST_CASE("a fault that never strikes fails the drill, though all is equal") {
  const DrillCase c = tampered("never", "exec $real train \"$2\" -o \"$4\"\n");
  CHECK_FALSE(c.passed());
  CHECK((c.losses_equal && c.samples_equal && c.parameters_equal && c.optimizer_equal && c.restarts == 0));
  CHECK(c.differences == std::vector<std::string>{"the fault never struck"});
}

TEST_CASE("a recovered run with other numbers fails the drill") {
  // The faulted run gets another seed: other losses and state, the same samples.
  const DrillCase c =
      tampered("other-seed", R"(if [ "$5" = --inject ]; then sed 's/^seed: .*/seed: 99/' "$2" > "$4/other.yaml"
  exec $real train "$4/other.yaml" -o "$4" --inject "$6"; fi
exec $real "$@"
)");
  CHECK_FALSE(c.passed());
  CHECK((c.samples_equal && !c.losses_equal && !c.parameters_equal && !c.optimizer_equal));
}

TEST_CASE("a recovered run on other samples fails the drill") {
  const DrillCase c = tampered(
      "other-samples", R"(if [ "$5" = --inject ]; then sed 's/shuffle_seed: .*/shuffle_seed: 5/' "$2" > "$4/other.yaml"
  exec $real train "$4/other.yaml" -o "$4" --inject "$6"; fi
exec $real "$@"
)");
  CHECK_FALSE(c.passed());
  CHECK_FALSE(c.samples_equal);
}

TEST_CASE("everything that a drill writes lies in its output folder, wherever it is called") {
  const TempDirectory folder;
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  run.steps = 4, run.save = true, run.save_interval = 2, run.data = "out/data/seq48";  // not there
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  write_bytes(folder / "faults.yaml",
              "name: one\nrun: run.yaml\nexpect: bitwise\ncases:\n"
              "  - {name: one, kind: kill, rank: 1, step: 4, at: optimizer}\n");
  const Ended ended = windtunnel("drill faults.yaml -o here", "cd '" + folder.path().string() + "' &&");
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("Recovery was exact"));
  CHECK(folder.entries() == 3);  // two files and the output folder
  CHECK(std::filesystem::exists(folder / "here/data-seq48/index.json"));
}
