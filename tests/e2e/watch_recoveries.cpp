// windtunnel watch over real training on virtual nodes of this machine, started by the hooks of configs/watch: the run
// is slow or its store dies, is stopped and started again, and trains what an undisturbed run trains. Only sweeps are
// recorded ones.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "planner/experiments/drill_invariants.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/synthetic_fleet.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"
#include "trainer/process/trainer_process.hpp"
#include "trainer/run_folder/run_lines.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

/// The machine in place of windtunnel: node-2 computes slowly from the next step on, in every training that has it, and
/// a sweep finds what `fleet.json` holds.
constexpr const char* kMachine = R"sh(#!/bin/sh
here=$(dirname "$0")
for last; do :; done
if [ "$1" = health ]; then
  cp "$here/fleet.json" "$last"
  exit 1
fi
echo >> "$here/starts"
run=$last next=9
if [ "$(wc -l < "$here/starts")" -gt "$(cat "$here/slow_starts")" ] || grep -qs '^node-2' "$run/cordoned"; then
  exec "$TRAINER" "$@"
fi
if [ -e "$run/checkpoints/latest" ]; then next=$(($(sed 's/step-0*//' "$run/checkpoints/latest") + 1)); fi
rm -f "$run/strikes.jsonl"
cat > "$here/faults.yaml" <<EOF
name: watched
run: $2
events:
  - {who: {domain: rank, index: 2}, when: {step: $next}, what: {kind: slow, factor: 100}}
EOF
exec "$TRAINER" "$@" --faults "$here/faults.yaml"
)sh";

/// Four nodes of one GPU each, which a plan is made for.
constexpr const char* kCluster = R"(name: virtual
kind: gpu
nodes: 4
gpus_per_node: 1
gpu: {name: H100-SXM-80GB, memory: 79.1GiB}
nvswitch: {bandwidth: 450GB/s}
nic: {count: 1, bandwidth: 400Gb/s, latency: 2.7us}
leaf: {nodes: 4, oversubscription: 1}
storage: {write: 80GB/s, read: 160GB/s, node_write: 4GB/s, node_read: 8GB/s}
sources: {gpu: "assumed: a", nvswitch: "assumed: a", nic: "assumed: a", leaf: "assumed: a", storage: "assumed: a"}
)";

/// Of as many steps that the rest is worth a restart, and not a day of repair.
constexpr const char* kStudy = R"(name: watched
model: model.yaml
cluster: cluster.yaml
gpus: 4
stack: windtunnel-train
tokens: 1B
max_seq_len: 48
global_train_batch_size: 12
routing: [balanced]
failures: llama3
runs: 1
search: {microbatch: [1], recompute: [none], expert_degrees: [1]}
)";

constexpr const char* kModel = R"(name: small
n_layers: 1
d_model: 88
n_heads: 4
vocab_size: 257
attn_config: {kv_n_heads: 2}
ffn_config: {ffn_hidden_size: 104, moe_num_experts: 8, moe_top_k: 2}
)";

/// Resharded when it shrinks; small steps of the optimizer, so that layouts stay close. Slow, it outlasts the planner.
RunSpec watched_run() {
  RunSpec run = with_layout(small_run(), 2, 2, 1);
  run.model.layers = 1, run.global_batch = 12, run.optimizer.lr = 3e-5;
  run.steps = 80, run.save = true, run.save_interval = 4, run.dist_timeout_s = 60;
  return run;
}

/// plan.json of the study, made once; the files that the study names lie in the folder above.
fs::path planned() {
  const fs::path folder = scratch("study"), plan = folder / "plan/plan.json";
  if (fs::exists(plan)) return plan;
  fs::create_directory(folder);
  write_bytes(folder / "cluster.yaml", kCluster);
  write_bytes(folder / "model.yaml", kModel);
  write_bytes(folder / "study.yaml", kStudy);
  const Ended ended = windtunnel("plan study.yaml -o plan --allow-assumed", "cd '" + folder.string() + "' &&");
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  return plan;
}

class Machine {
 public:
  Machine() {
    fs::create_directory(folder());
    file("windtunnel", kMachine);
    fs::permissions(folder_ / "windtunnel", fs::perms::owner_all);
    file("run.yaml", run_to_yaml(watched_run()));
    // Real steps on busy cores: what counts as slow is far above them, and what counts as silence far above slow ones.
    rules("  - {name: slow steps, metric: step_s, above: 5, of: best, steps: 4}\n", "90s");
  }
  ~Machine() { local("stop"); }  // where a test has failed it still runs

  fs::path folder() const { return folder_ / "run"; }
  void file(const std::string& name, const std::string& bytes) { write_bytes(folder_ / name, bytes); }
  /// Silence, from `silent` on, and more signals.
  void rules(const std::string& more, const std::string& silent) {
    file("rules.yaml", "every: 50ms\nwindow: 4\nsignals:\n" + more +
                           "  - {name: silence, metric: silence, above: 50, of: recent, at_least: " + silent +
                           "}\n"
                           "undecided: sweep\nsure: 0.99\nmost_excluded: 0.25\nrestarts: 3\n"
                           "rollback: {margin: 4, skip: 8}\nverify: {steps: 4, within: 5m}\n");
  }
  void start(int slow_starts) {
    planned();
    file("slow_starts", std::to_string(slow_starts));
    REQUIRE(local("start", (folder_ / "run.yaml").string()) == 0);
    wait_for_step(folder(), 1);
  }
  /// What a sweep finds of the four nodes from now on.
  void sweeps_find(int slow) {
    SyntheticFleet fleet({.nodes = 4}, 7);
    fleet.slow_node(slow, 2);
    for (int n = 0; n < 4; ++n) fleet.fleet.nodes[static_cast<std::size_t>(n)].name = fmt::format("node-{}", n);
    file("fleet.json", to_json(fleet.fleet).dump());
  }
  /// In the folder of the study, beside which its files are looked up.
  Ended watch() const {
    return windtunnel(fmt::format("watch '{0}/run' --rules '{0}/rules.yaml' --hooks '{1}' --plan '{2}' --act",
                                  folder_.path().string(), fs::absolute("configs/watch/hooks-local.yaml").string(),
                                  planned().string()),
                      "cd '" + scratch("study").string() + "' && " + environment() + "timeout 300");
  }
  /// Kills the agent, which hosts the store, after the wait. The future has the result of kill().
  std::future<int> kill_agent(std::function<void()> wait) const {
    return std::async(std::launch::async, [this, wait = std::move(wait)] {
      wait();
      return kill(std::stoi(read("run/watch.pid")), SIGKILL);
    });
  }
  /// Of the start that was the last.
  std::int64_t ranks() const { return read_run(folder() / "run.yaml").layout.world(); }
  std::string read(const std::string& name) const { return read_bytes(folder_ / name); }
  /// The hooks that were run, in their order.
  std::string hooks_run() const {
    std::string out;
    for (const json& decision : read_lines(folder() / "decisions.jsonl"))
      if (!decision["action"].is_null()) out += decision["action"]["hook"].get<std::string>() + " ";
    return out;
  }
  /// Beside the undisturbed run, by the drill's own measure.
  std::vector<std::string> differences(Expectation::State state) const {
    Expectation expect;
    expect.state = state;
    DrillCase out;
    compare_with_undisturbed(trained(watched_run()), folder(), expect, out);
    check_replays(folder(), watched_run().steps, expect, out);
    check_nothing_left(folder(), out);
    return out.differences;
  }

 private:
  int local(const std::string& action, const std::string& run_file = "") const {
    const std::string words = fmt::format("configs/watch/local.sh {} '{}' '{}'", action, folder().string(), run_file);
    return std::system((environment() + words).c_str());
  }
  std::string environment() const {
    return fmt::format("WINDTUNNEL='{}' TRAINER='{}' ", (folder_ / "windtunnel").string(), trainer_program().string());
  }

  TempDirectory folder_;
};

}  // namespace

/// A machine whose watch has run `hooks`, started and watched by `watched`. Other programs can make the run slow once
/// more after that, and the watch begins again: then another machine takes its place.
std::unique_ptr<Machine> machine_after(const std::string& hooks, const std::function<Ended(Machine&)>& watched,
                                       std::string& said) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    auto machine = std::make_unique<Machine>();
    said = watched(*machine).said;
    const std::string run = machine->hooks_run();
    if (tries == kTries || run == hooks || !run.starts_with(hooks)) return machine;
  }
}

TEST_CASE("a slow node without a spare: the run goes on in the planner's layout for the nodes that are left") {
  const std::string hooks = "save stop sweep sweep cordon start ";
  std::string said;
  const auto machine = machine_after(
      hooks, [](Machine& m) { return m.sweeps_find(2), m.start(1), m.watch(); }, said);
  INFO(said << machine->read("run/train.log"));
  CHECK(machine->hooks_run() == hooks);
  CHECK_THAT(said, Contains("shrink, without node-2") && Contains("it helped"));
  CHECK_THAT(machine->read("run/cordoned"), StartsWith("node-2\t"));
  CHECK(machine->ranks() == 3);
  CHECK(machine->differences(Expectation::State::layouts).empty());
}

TEST_CASE("sweeps blame the wrong node: the shrunk run is as slow, and gets all of its nodes back") {
  const std::string hooks = "save stop sweep sweep cordon start uncordon save stop start tell ";
  std::string said;
  const auto machine = machine_after(
      hooks, [](Machine& m) { return m.sweeps_find(1), m.start(2), m.watch(); }, said);
  INFO(said << machine->read("run/train.log"));
  CHECK(machine->hooks_run() == hooks);
  CHECK_THAT(said, Contains("shrink, without node-1") && Contains("it did not help"));
  CHECK(machine->read("run/cordoned").empty());
  CHECK(machine->ranks() == 4);
  CHECK(machine->differences(Expectation::State::layouts).empty());
}

TEST_CASE("the process with the store dies: the run is silent, and started again") {
  Machine machine;
  machine.rules("", "10s");
  machine.start(0);
  auto death = machine.kill_agent([&] { wait_for_step(machine.folder(), 10); });
  const Ended ended = machine.watch();
  INFO(ended.said << machine.read("run/train.log"));
  CHECK(death.get() == 0);
  CHECK(machine.hooks_run() == "stop start ");
  CHECK_THAT(ended.said, Contains("silence") && Contains("it helped"));
  CHECK(machine.differences(Expectation::State::bitwise).empty());
}

TEST_CASE("the process with the store dies while the run is to save: it goes on from what was saved") {
  Machine machine;
  machine.sweeps_find(2);
  machine.start(1);
  auto death = machine.kill_agent([&] {
    for (int waited_ms = 0; !fs::exists(machine.folder() / "hooks.log") && waited_ms < 200'000; ++waited_ms)
      usleep(1000);
  });
  const Ended ended = machine.watch();
  INFO(ended.said << machine.read("run/train.log"));
  CHECK(death.get() == 0);
  CHECK(machine.hooks_run() == "save stop sweep sweep cordon start ");
  CHECK_THAT(ended.said, Contains("shrink, without node-2") && Contains("it helped"));
  CHECK(machine.differences(Expectation::State::layouts).empty());
}
