// A run goes on without a replica, in place, and takes it back: what it trains is bit for bit what a run with the same
// replicas at every step trains. Real deaths.
#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/saved_run.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::json;

namespace {

constexpr const char* kPolicy = "policy: {on_loss: [without_replica, restart]}\n";

RunSpec replicas(std::int64_t replicate, std::int64_t shard, std::int64_t global_batch, std::int64_t steps) {
  RunSpec run = with_layout(small_run(), replicate, shard, shard);
  run.model.layers = 2, run.layout.microbatch = 1, run.global_batch = global_batch;
  run.steps = steps, run.save = true, run.save_interval = 4, run.keep_checkpoints = -1, run.dist_timeout_s = 20;
  return run;
}

/// Every step is saved: where another run can go on.
RunSpec saving_all(RunSpec run) {
  run.save_interval = 1;
  return run;
}

fs::path scenario_file(const std::string& name, const RunSpec& run, const std::string& events,
                       const std::string& policy = kPolicy) {
  const fs::path file = scratch(name + ".faults.yaml"), run_file = scratch(name + ".yaml");
  write_file_atomically(run_file, run_to_yaml(run));
  write_file_atomically(file,
                        fmt::format("name: {}\nrun: {}\n{}events: [{}]\n", name, run_file.string(), policy, events));
  return file;
}

Ended train_with(const std::string& name, const RunSpec& run, const std::string& events) {
  Launch launch;
  launch.more = {"--faults", scenario_file(name, run, events).string()};
  const Ended ended = train(run, scratch(name), launch);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  return ended;
}

json changes_of(const std::string& name) { return read_json(scratch(name) / "agent.json").at("restarts"); }

std::vector<json> generations_of(const std::string& name) {
  std::vector<json> out;
  std::ifstream in(scratch(name) / "generations.jsonl");
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

std::string lost(const std::string& who, const std::string& when, const std::string& more = "") {
  return fmt::format("{{who: {{domain: {}}}, when: {{{}}}, what: {{kind: kill}}{}}}", who, when, more);
}

/// A folder in which a run goes on after a step that `from` has saved.
fs::path going_on(const std::string& name, const fs::path& from, std::int64_t step) {
  const fs::path folder = scratch(name);
  fs::create_directories(folder / "checkpoints");
  fs::copy(checkpoint_of(from, step), checkpoint_of(folder, step), fs::copy_options::recursive);
  write_file_atomically(folder / "checkpoints" / "latest", checkpoint_of(folder, step).filename().string() + "\n");
  return folder;
}

/// So many ranks of the run from the start, without an agent: whole replicas, all of the batch.
void train_in_part(const RunSpec& run, std::int64_t ranks, const std::string& name) {
  const fs::path file = scenario_file(name, run, lost("rank, index: 0", "step: 1", ", generation: 99"));
  const std::string port = std::to_string(free_port());
  std::vector<Started> started;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Launch launch;
    launch.environment = {{"RANK", std::to_string(rank)},
                          {"WORLD_SIZE", std::to_string(ranks)},
                          {"LOCAL_RANK", std::to_string(rank)},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", port}};
    started.push_back(start_trainer(
        {"train", scratch(name + ".yaml").string(), "-o", scratch(name).string(), "--faults", file.string()}, launch));
  }
  for (const Started& rank : started) {
    const Ended ended = wait_for(rank);
    INFO(ended.said);
    REQUIRE(ended.status == 0);
  }
}

/// What the run trains that has `ranks` of its ranks after step `without`, and all of them again after step `again`.
struct Reference {
  std::vector<Step> steps;
  fs::path folder;
};
Reference with_membership(const std::string& name, const RunSpec& run, std::int64_t ranks, std::int64_t without,
                          std::int64_t again) {
  const RunSpec saved = saving_all(run);
  const fs::path whole = trained(saved), part = going_on(name + "-part", whole, without);
  train_in_part(saved, ranks, name + "-part");
  Reference out{steps_of(whole), part};
  out.steps.resize(static_cast<std::size_t>(without));
  std::vector<Step> more = steps_of(part);
  if (again < run.steps) {
    more.resize(static_cast<std::size_t>(again - without));
    out.folder = going_on(name + "-again", part, again);
    REQUIRE(train(saved, out.folder).status == 0);
    const std::vector<Step> rest = steps_of(out.folder);
    more.insert(more.end(), rest.begin(), rest.end());
  }
  out.steps.insert(out.steps.end(), more.begin(), more.end());
  return out;
}

void check_equals(const std::string& name, const Reference& reference) {
  const std::vector<Step> steps = steps_of(scratch(name));
  REQUIRE(steps.size() == reference.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO(name << ": step " << i + 1 << ": loss " << steps[i].loss << ", of the reference " << reference.steps[i].loss);
    CHECK(steps[i] == reference.steps[i]);
  }
  CHECK((state_of(latest_checkpoint(scratch(name))) == state_of(latest_checkpoint(reference.folder))));
  CHECK(leftovers(scratch(name)).empty());
}

}  // namespace

TEST_CASE("2 -> 1 replicas, wherever the kill strikes: the step is done again by those that are left") {
  const RunSpec run = replicas(2, 2, 8, 9);
  const auto [name, victim, when] = GENERATE(table<std::string, int, std::string>({
      {"before-reduction", 3, "step: 6, at: mb1.L0.experts.bwd"},
      {"in-reduction", 3, "step: 6, at: mb1.L0.dense.replicas, phase: waiting"},
      {"in-optimizer", 2, "step: 6, at: optimizer"},
      {"before-loss", 3, "step: 6, at: loss.reduce"},
      {"in-loss", 3, "step: 6, at: loss.reduce, phase: waiting"},
      {"first-replica", 0, "step: 6, at: mb1.L0.dense.replicas, phase: issued"},
  }));
  train_with(name, run, lost(fmt::format("rank, index: {}", victim), when));
  const json changes = changes_of(name);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].at("policy") == fmt::format("without replica {}", victim / 2));
  CHECK(changes[0].at("ranks") == json{victim});
  CHECK(changes[0].at("nodes") == (victim < 2 ? json({2, 3}) : json({0, 1})));
  const std::int64_t after = changes[0].at("resumed_after");
  // Before the replicas meet in step 6, one of them may not have all of step 5's end; what was issued may have been
  // sent.
  const bool met = name == "in-optimizer" || name == "before-loss" || name == "in-loss";
  CHECK(after >= (met ? 5 : 4));
  CHECK(after <= (name == "in-loss" ? 6 : 5));
  check_equals(name, with_membership(name, run, 2, after, run.steps));
}

TEST_CASE("the first replica goes between two steps: the line of the last one is not lost with its rank 0",
          "[.nightly]") {
  const RunSpec run = replicas(2, 2, 8, 9);
  train_with("line", run, lost("replica, index: 0", "step: 6, at: begin"));
  const json changes = changes_of("line");
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].at("policy") == "without replica 0");
  const std::int64_t after = changes[0].at("resumed_after");
  CHECK((after == 4 || after == 5));  // others may not have all of step 5's end
  check_equals("line", with_membership("line", run, 2, after, run.steps));
}

TEST_CASE("2 -> 1 -> 2 replicas: the node is back, and its replica rejoins after a step", "[.nightly]") {
  const RunSpec run = replicas(2, 2, 8, 60);
  train_with("back", run, lost("replica, index: 1", "step: 6", ", lasts: 300ms"));
  const json changes = changes_of("back");
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].at("policy") == "without replica 1");
  CHECK(changes[0].at("excluded") == json({2, 3}));
  const std::int64_t again = changes[1].at("resumed_after");
  CHECK(changes[1].at("policy") == fmt::format("replica 1 rejoins after step {}", again));
  CHECK(changes[1].at("nodes") == json({0, 1, 2, 3}));
  CHECK(read_json(scratch("back") / "agent.json").at("excluded").empty());
  check_equals("back", with_membership("back", run, 2, changes[0].at("resumed_after"), again));
}

TEST_CASE("3 -> 2 -> 3 replicas with unequally many sequences: 3 3 3, then 5 4", "[.nightly]") {
  const RunSpec run = replicas(3, 1, 9, 60);
  train_with("uneven", run, lost("replica, index: 0", "step: 6, at: optimizer", ", lasts: 300ms"));
  const json changes = changes_of("uneven");
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].at("policy") == "without replica 0");
  CHECK(changes[0].at("resumed_after") == 5);
  const std::int64_t again = changes[1].at("resumed_after");
  check_equals("uneven", with_membership("uneven", run, 2, 5, again));
}

TEST_CASE("a process fails and its node lives: its replica starts again at once and rejoins", "[.nightly]") {
  const RunSpec run = replicas(2, 2, 8, 60);
  const auto [name, what] = GENERATE(table<std::string, std::string>({
      {"exit", "{kind: exit, status: 7}"},
      {"exception", "{kind: exception}"},  // which the failing rank tells the others, too
  }));
  train_with(
      name, run,
      fmt::format("{{who: {{domain: rank, index: 1}}, when: {{step: 6, at: mb0.L1.experts.bwd}}, what: {}}}", what));
  const json changes = changes_of(name);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].at("policy") == "without replica 0");
  CHECK(changes[0].at("ranks") == json{1});
  CHECK(changes[0].at("excluded").empty());
  CHECK(changes[1].at("nodes") == json({2, 3, 0, 1}));
  check_equals(name, with_membership(name, run, 2, changes[0].at("resumed_after"), changes[1].at("resumed_after")));
}

TEST_CASE("a notice to end without the replica: those that are left save and end, the next start has all ranks",
          "[.nightly]") {
  const RunSpec run = replicas(2, 2, 8, 60);
  Launch launch;
  launch.more = {"--faults", scenario_file("noticed", run, lost("replica, index: 1", "step: 6")).string()};
  const fs::path folder = scratch("noticed");
  std::vector<std::string> arguments{"train", scratch("noticed.yaml").string(), "-o", folder.string()};
  arguments.insert(arguments.end(), launch.more.begin(), launch.more.end());
  const Started agent = start_trainer(arguments);
  wait_for_step(folder, 10);
  kill(agent.pid, SIGTERM);
  const Ended ended = wait_for(agent);
  INFO(ended.said);
  REQUIRE(ended.status == 75);
  const std::int64_t saved = checkpoint_steps(folder).back(), without = changes_of("noticed")[0].at("resumed_after");
  CHECK(steps_of(folder).size() == static_cast<std::size_t>(saved));
  REQUIRE(train(run, folder).status == 0);
  check_equals("noticed", with_membership("noticed", run, 2, without, saved));
}

TEST_CASE("a second failure without the replica: all start again from the newest checkpoint") {
  const RunSpec run = replicas(2, 2, 8, 12);
  train_with("twice", run,
             lost("rank, index: 3", "step: 6") + ", " + lost("rank, index: 0", "step: 10", ", generation: 1"));
  const json changes = changes_of("twice");
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].at("policy") == "without replica 1");
  CHECK(changes[1].at("policy") == "restart");
  const std::int64_t checkpoint_step = changes[1].at("checkpoint_step");
  CHECK((checkpoint_step == 4 || checkpoint_step == 8));  // the save of step 8 may be under way
  CHECK(steps_of(scratch("twice")).size() == 12);
}

TEST_CASE("a replica that dies while it joins: all start again", "[.nightly]") {
  const RunSpec run = replicas(2, 2, 8, 60);
  train_with("joining", run,
             lost("replica, index: 1", "step: 6", ", lasts: 300ms") + ", " +
                 lost("rank, index: 2", "at: restart", ", generation: 2"));
  const json changes = changes_of("joining");
  REQUIRE(changes.size() >= 2);
  CHECK(changes[0].at("policy") == "without replica 1");
  CHECK(changes[1].at("policy") == "restart");
  CHECK(steps_of(scratch("joining")).size() == 60);
}

TEST_CASE("after a regroup a fault strikes whom the ranks are then, not whom they were at the start") {
  const RunSpec run = replicas(3, 1, 12, 9);
  train_with("two-losses", run,
             lost("replica, index: 0", "step: 3, at: optimizer") + ", " +
                 lost("replica, index: 1", "step: 6, at: optimizer", ", generation: 1"));
  const json changes = changes_of("two-losses");
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].at("policy") == "without replica 0");
  CHECK(changes[0].at("nodes") == json({1, 2}));
  CHECK(changes[1].at("policy") == "without replica 1");
  CHECK(changes[1].at("nodes") == json{1});
  std::vector<std::pair<int, int>> struck;  // rank and node
  std::ifstream in(scratch("two-losses") / "strikes.jsonl");
  for (std::string line; std::getline(in, line);)
    struck.emplace_back(json::parse(line).at("rank"), json::parse(line).at("node"));
  CHECK(struck == std::vector<std::pair<int, int>>{{0, 0}, {1, 2}});
}

TEST_CASE("a silent error is in the memory of all replicas: nobody goes on from it, but from what was compared") {
  RunSpec run = replicas(3, 1, 9, 9);
  run.resilience.verify_interval = 2;
  train_with("silent", run,
             "{who: {domain: rank, index: 2}, when: {step: 5, at: optimizer, saved: true}, "
             "what: {kind: corrupt, tensor: weight, layer: 1, element: 7, bit: 21}}");
  const json changes = changes_of("silent");
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].at("cause") == "exit status 5");
  CHECK(changes[0].at("policy") == "restart");
  CHECK(generations_of("silent").back().at("resumed_after") == 4);
  check_equals("silent", {steps_of(trained(run)), trained(run)});
}

TEST_CASE("a process fails in its place again, and no checkpoint is new: its node counts as lost", "[.nightly]") {
  RunSpec run = replicas(2, 2, 8, 80);
  run.save_interval = 0;
  const auto exits = [](int rank, std::int64_t step, int generation) {
    return fmt::format(
        "{{who: {{domain: rank, index: {}}}, when: {{step: {}}}, what: {{kind: exit, status: 7}}, generation: {}}}",
        rank, step, generation);
  };
  train_with("again", run, exits(1, 6, 0) + ", " + exits(3, 79, 2));  // of node 1
  const json changes = changes_of("again");
  INFO(changes.dump(1));
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].at("excluded").empty());
  CHECK_THAT(changes[1].at("policy").get<std::string>(), Contains("replica 1 rejoins"));
  CHECK(changes[2].at("policy") == "without replica 1");
  CHECK(changes[2].at("excluded") == json{1});
  CHECK(steps_of(scratch("again")).size() == 80);
}

TEST_CASE("a rank that hangs is missed by all: all start again, which is one failure") {
  RunSpec run = replicas(2, 2, 8, 9);
  run.dist_timeout_s = 8;
  const fs::path file =
      scenario_file("hang", run,
                    "{who: {domain: rank, index: 1}, when: {step: 6, at: mb0.L1.experts.bwd, saved: true}, "
                    "what: {kind: hang}}",
                    "policy: {on_loss: [without_replica, restart], max_restarts: 1}\n");
  Launch launch;
  launch.more = {"--faults", file.string()};
  const Ended ended = train(run, scratch("hang"), launch);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK(changes_of("hang").back().at("policy") == "restart");
  CHECK(generations_of("hang").back().at("resumed_after") == 4);
  check_equals("hang", {steps_of(trained(run)), trained(run)});
}
