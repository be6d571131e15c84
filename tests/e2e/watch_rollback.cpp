// windtunnel watch over real training whose loss diverges: it goes back to before it, leaves batches out, and ends as a
// run that has left the same ones out from the beginning.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/fixtures/synthetic_fleet.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

const std::string kDamaged =
    "who: {domain: rank, index: 0}, when: {step: 12, at: optimizer}, what: {kind: corrupt, tensor: weight, ";

/// One rank, a checkpoint of every second step. Constant learning rate.
RunSpec watched_run() {
  RunSpec run = small_run();
  run.steps = 24, run.global_batch = 8, run.optimizer.final_lr_fraction = 1;
  run.save = true, run.save_interval = 2, run.keep_checkpoints = -1;
  return run;
}

/// configs/watch/local.sh starts and stops a run, which these events strike after the first start; its sweep finds
/// eight healthy nodes.
class Site {
 public:
  Site(const std::string& name, const std::vector<std::string>& events) {
    write_bytes(folder_ / "run.yaml", run_to_yaml(watched_run()));
    write_bytes(folder_ / "fleet.json", to_json(SyntheticFleet({.nodes = 8}, 7).fleet).dump());
    write_bytes(folder_ / "windtunnel",
                fmt::format("#!/bin/sh\n"
                            "[ \"$1\" != health ] || {{ shift $(($# - 1)); exec cp '{}' \"$1\"; }}\n"
                            "sleep 3\n"  // steps are done after the start, which takes a second
                            "mkdir '{}' || exec '{}' \"$@\"\n"
                            "exec '{}' \"$@\" --faults '{}'\n",
                            (folder_ / "fleet.json").string(), (folder_ / "struck").string(), WT_PROGRAM, WT_PROGRAM,
                            fault_file(name, events).string()));
    std::filesystem::permissions(folder_ / "windtunnel", std::filesystem::perms::owner_all);
    write_bytes(
        folder_ / "rules.yaml",
        "every: 50ms\nwindow: 4\nsignals:\n"
        "  - {name: loss jump, metric: loss, above: 0.6, deviations: 4, of: before, level: 4, within: 100, steps: 2}\n"
        "undecided: tell\nsure: 0.99\nmost_excluded: 0.25\nrestarts: 3\n"
        "rollback: {margin: 4, skip: 8}\nverify: {steps: 4, within: 5m}\n");
  }
  ~Site() { local("stop", ""); }

  std::filesystem::path run() const { return folder_ / "run"; }
  /// Until the run has ended.
  Ended watch() {
    REQUIRE(local("start", (folder_ / "run.yaml").string()) == 0);
    wait_for_step(run(), 1);
    return windtunnel(fmt::format("watch '{}' --rules '{}' --hooks hooks-local --act", run().string(),
                                  (folder_ / "rules.yaml").string()),
                      environment() + " timeout 200");
  }
  /// The decisions that ran this hook.
  std::vector<json> decisions(const std::string& hook) const {
    std::istringstream lines(read_bytes(run() / "decisions.jsonl"));
    std::vector<json> out;
    for (std::string line; std::getline(lines, line);)
      if (json decision = json::parse(line); decision["action"].is_object() && decision["action"]["hook"] == hook)
        out.push_back(std::move(decision));
    return out;
  }

 private:
  std::string environment() const { return fmt::format("WINDTUNNEL='{}'", (folder_ / "windtunnel").string()); }
  int local(const std::string& action, const std::string& more) const {
    return std::system(
        fmt::format("{} configs/watch/local.sh {} '{}' '{}'", environment(), action, run().string(), more).c_str());
  }

  TempDirectory folder_;
};

/// The loss diverges at step 13. Four steps before it step 8 is the newest checkpoint, and eight batches from there on
/// are more than those until step 13.
void check_went_back(Site& site) {
  const Ended ended = site.watch();
  INFO(ended.said << read_bytes(site.run() / "train.log") << read_bytes(site.run() / "hooks.log"));
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, Contains("from step 8, 5 steps before step 13, leaving out batches 9-16") &&
                             Contains("it helped") && Contains("24 steps done"));
  const std::vector<json> starts = site.decisions("start");
  REQUIRE(starts.size() == 1);
  CHECK(starts[0]["action"]["rollback"] == json::parse(R"({"step": 8, "bad_step": 13, "skipped": [[9, 16]]})"));
  CHECK(starts[0]["ledger"]["skipped"] == json::parse("[[9, 16]]"));
  CHECK_THAT(read_bytes(site.run() / "train.log"), Contains("continuing after step 8 from"));
  RunSpec reference = watched_run();
  reference.resilience.skipped = {{9, 16}};
  CHECK(steps_of(site.run()) == steps_of(trained(reference)));
  CHECK(state_of(checkpoint_of(site.run(), 24)) == state_of(checkpoint_of(trained(reference), 24)));
  // What has the fault in it is no checkpoint any more, and is not deleted.
  CHECK(std::filesystem::exists(site.run() / "checkpoints" / "step-00000012.skipped-batches"));
}

}  // namespace

TEST_CASE("gradients that are no numbers end the run twice; the watch goes back to before them") {
  Site site("no-numbers", {kDamaged + "layer: 1, element: 7, bit: 30}"});
  check_went_back(site);
  CHECK_FALSE(std::filesystem::exists(site.run() / "diverged.json"));  // step 13 is done
}

TEST_CASE("a loss that jumps; the watch goes back to before it") {
  // All layers lose their weights. Then the run stands still, so that the watch sees the two steps that were wrong.
  std::vector<std::string> events{"who: {domain: rank, index: 0}, when: {step: 15}, what: {kind: hang}"};
  for (int layer = 0; layer < 3; ++layer) events.push_back(kDamaged + fmt::format("layer: {}, zero: true}}", layer));
  Site site("jump", events);
  check_went_back(site);
}
