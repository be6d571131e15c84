// Copies in the memory of nodes: a run goes on from the nearest level that is whole and undamaged, bit for bit as if
// nothing had happened.
#include <signal.h>

#include <catch2/catch.hpp>
#include <functional>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/safetensors/sealed_document.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

/// Four ranks, each a node of its own: copies after every third step, checkpoints in storage after every fifth.
RunSpec copied_run(std::int64_t replicate = 1) {
  RunSpec run = with_layout(saved_run(12), replicate, 4 / replicate, 2);
  run.save_interval = 5, run.resilience.local.interval = 3;
  return run;
}

fs::path copy_file(const fs::path& folder, int node, const std::string& level, int step, int part) {
  return folder / "nodes" / std::to_string(node) / level / fmt::format("step-{:08}", step) /
         fmt::format("shard-{:05}.safetensors", part + 1);
}

/// What a kill in step 10 leaves: copies of steps 3 and 6, and the checkpoint of step 5. Those of step 9, which may be
/// half written, are removed.
fs::path interrupted(const std::string& name, const RunSpec& run = copied_run()) {
  static std::map<std::string, fs::path> done;
  fs::path& from = done[run_to_yaml(run)];
  if (from.empty()) {
    from = scratch(fmt::format("interrupted-{}", done.size()));
    Launch launch;
    launch.more = {"--faults", fault_file("step-10", {killed(1, "step: 10, at: optimizer")}), "--max-restarts", "0"};
    CHECK(train(run, from, launch).status != 0);
    for (int node = 0; node < 4; ++node)
      for (const char* level : {"local", "peer"}) fs::remove_all(copy_file(from, node, level, 9, 0).parent_path());
  }
  fs::copy(from, scratch(name), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  return scratch(name);
}

std::string go_on(const fs::path& folder, const RunSpec& run, std::int64_t step, const std::string& level) {
  const Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const auto loaded = read_json(folder / "summary.json").at("loaded");
  CHECK(loaded.at("step") == step);
  CHECK(loaded.at("level") == level);
  CHECK(loaded.at("seconds") > 0);
  CHECK_THAT(ended.said, Catch::Contains(fmt::format("continuing after step {} from ", step)));
  CHECK(steps_of(folder) == steps_of(trained(run)));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
  CHECK(!fs::exists(folder / "nodes" / "0"));  // a run that is over gives its nodes their memory back
  return ended.said;
}

void lose_node(const fs::path& folder, int node) { fs::remove_all(folder / "nodes" / std::to_string(node)); }

}  // namespace

TEST_CASE("a run that was killed goes on from the copies in its nodes' own memory") {
  const fs::path folder = interrupted("own");
  for (int part = 0; part < 4; ++part) {
    CHECK(fs::exists(copy_file(folder, part, "local", 6, part)));
    CHECK(fs::exists(copy_file(folder, (part + 1) % 4, "peer", 6, part)));
  }
  const fs::path half = copy_file(folder, 2, "local", 3, 2).string() + ".tmp";
  write_bytes(half, "half written");
  const fs::path memory = scratch("of-node-7");  // whose place another node has taken
  fs::create_directories(memory);
  write_bytes(memory / "copy", "of an earlier step");
  fs::create_directory_symlink(memory, folder / "nodes" / "7");
  fs::create_directory_symlink(scratch("of-another-machine"), folder / "nodes" / "8");  // whose memory is not seen here
  go_on(folder, copied_run(), 6, "local");
  CHECK(!fs::exists(fs::symlink_status(folder / "nodes" / "7")));
  CHECK(!fs::exists(memory));
  CHECK(fs::is_symlink(folder / "nodes" / "8"));
}

TEST_CASE("a node that is lost, or a copy that is damaged, is replaced by its peer's") {
  const fs::path lost = interrupted("lost-node");
  lose_node(lost, 1);
  go_on(lost, copied_run(), 6, "peer");
  const fs::path apart = interrupted("lost-apart");
  lose_node(apart, 0), lose_node(apart, 2);
  go_on(apart, copied_run(), 6, "peer");
  const fs::path damaged = interrupted("damaged-copy");
  flip_byte(copy_file(damaged, 2, "local", 6, 2));
  CHECK_THAT(go_on(damaged, copied_run(), 6, "peer"), Catch::Contains("tensor state has another checksum"));
}

TEST_CASE("where a part is nowhere undamaged, storage is next, and what is older in memory after it", "[.nightly]") {
  const auto spoil = [](const fs::path& folder) {
    flip_byte(copy_file(folder, 2, "local", 6, 2));
    fs::resize_file(copy_file(folder, 3, "peer", 6, 2), 1000);
  };
  const fs::path damaged = interrupted("both-damaged");
  spoil(damaged);
  CHECK_THAT(go_on(damaged, copied_run(), 5, "storage"), Catch::Contains("no node has part 2 undamaged"));
  const fs::path lost = interrupted("lost-together");
  lose_node(lost, 1), lose_node(lost, 2);
  CHECK_THAT(go_on(lost, copied_run(), 5, "storage"), Catch::Contains("no node has part 1"));
  const fs::path older = interrupted("storage-damaged");
  spoil(older);
  flip_byte(shard(checkpoint_of(older, 5), 1));
  go_on(older, copied_run(), 3, "local");
}

TEST_CASE("copies that two starts made of one step are not mixed, nor those of another step, layout or model",
          "[.nightly]") {
  const auto change = [](const fs::path& file, const std::string& key, const nlohmann::json& value) {
    const fs::path record = fs::path(file).replace_extension(".json");
    nlohmann::json changed = read_json(record);
    REQUIRE(changed.at(key) != value);
    changed[key] = value;
    write_bytes(record, sealed(changed).dump());
  };
  const std::vector<std::pair<std::string, nlohmann::json>> changes{{"history", "another"},
                                                                    {"step", 3},
                                                                    {"shard", 0},
                                                                    {"settings", {{"seed", "7"}}},
                                                                    {"schema", "windtunnel.copy/9"}};
  for (const auto& [key, value] : changes) {
    const fs::path folder = interrupted("changed-" + key);
    change(copy_file(folder, 1, "local", 6, 1), key, value);
    change(copy_file(folder, 2, "peer", 6, 1), key, value);
    go_on(folder, copied_run(), 5, "storage");
  }
  const fs::path unsealed = interrupted("unsealed");  // a flipped bit in a record
  for (const fs::path& file : {copy_file(unsealed, 1, "local", 6, 1), copy_file(unsealed, 2, "peer", 6, 1)}) {
    const fs::path record = fs::path(file).replace_extension(".json");
    nlohmann::json changed = read_json(record);
    changed["sampler"]["sample_in_epoch"] = changed["sampler"]["sample_in_epoch"].get<std::int64_t>() ^ 1;
    write_bytes(record, changed.dump());
  }
  CHECK_THAT(go_on(unsealed, copied_run(), 5, "storage"), Catch::Contains("says that its checksum is"));
  const fs::path folder = interrupted("other-layout");
  const Ended ended = train(copied_run(2), folder);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said,
             Catch::Contains("of another cut") && Catch::Contains("continuing after step 5 from " + folder.string()));
}

TEST_CASE("where copies of another run are all there is, they are refused and stay") {
  RunSpec run = with_layout(copied_run(), 1, 1, 1);
  run.save = false, run.steps = 3;
  const fs::path folder = scratch("other-run");
  REQUIRE(train(run, folder).status == 0);
  run.steps = 6;
  RunSpec other = run;
  other.optimizer.eps = 1e-6;
  const Ended refused = train(other, folder);
  INFO(refused.said);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.said, Catch::Contains("of another run: optimizer.eps: the run says 1e-06, it was 1e-08"));
  const Ended ended = train(run, folder);
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("continuing after step 3 from copies"));
}

TEST_CASE("replicas are copies of each other: nothing is sent, and one replaces the other") {
  const RunSpec run = copied_run(2);
  const fs::path folder = interrupted("replicas", run);
  for (int node = 0; node < 4; ++node) CHECK(!fs::exists(folder / "nodes" / std::to_string(node) / "peer"));
  lose_node(folder, 2);
  go_on(folder, run, 6, "peer");
}

TEST_CASE("a folder in the node's memory is linked; when the memory is gone the peer has the copy", "[.nightly]") {
  RunSpec run = copied_run();
  run.resilience.local.folder = scratch("memory");
  const fs::path folder = interrupted("memory-gone", run);
  CHECK(fs::is_symlink(folder / "nodes" / "1"));
  const fs::path memory = fs::read_symlink(folder / "nodes" / "1");
  CHECK(memory.parent_path() == scratch("memory"));
  fs::remove_all(memory);
  go_on(folder, run, 6, "peer");
  CHECK(fs::is_empty(scratch("memory")));

  run.resilience.local.folder = "/dev/null/memory";
  const Ended ended = train(run, scratch("no-memory"));
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, Catch::Contains("local_checkpoints: ") && Catch::Contains("/dev/null/memory"));
}

TEST_CASE("of one step in memory and in storage, the nearer is taken", "[.nightly]") {
  RunSpec run = copied_run();
  run.steps = 60, run.save_interval = 0, run.resilience.local.interval = 50;
  const fs::path folder = scratch("noticed");
  write_file_atomically(folder.string() + ".yaml", run_to_yaml(run));
  const Started agent = start_trainer({"train", folder.string() + ".yaml", "-o", folder.string()});
  wait_for_step(folder, 5);
  kill(agent.pid, SIGTERM);
  CHECK(wait_for(agent).status == 75);
  const auto done = static_cast<std::int64_t>(steps_of(folder).size());
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, done));
  go_on(folder, run, done, "local");
}

TEST_CASE("the last step is whole in storage before nodes get their memory back", "[.nightly]") {
  const RunSpec run = copied_run();
  const fs::path ended = scratch("last-step");
  Launch launch;
  launch.more = {"--faults", fault_file("at-the-end", {killed(0, "step: 12, at: manifest")}), "--max-restarts", "0"};
  CHECK(train(run, ended, launch).status != 0);
  REQUIRE(fs::exists(checkpoint_of(ended, 12)));
  REQUIRE(latest_checkpoint(ended) == checkpoint_of(ended, 10));
  using Change = std::function<void(const fs::path& checkpoint)>;
  const std::vector<std::pair<std::string, Change>> cases{
      {"whole", [](const fs::path&) {}},
      {"missing", [](const fs::path& checkpoint) { fs::remove_all(checkpoint); }},
      {"damaged", [](const fs::path& checkpoint) { flip_byte(shard(checkpoint, 1)); }},
      {"half", [](const fs::path& checkpoint) { fs::remove(checkpoint / "manifest.json"); }}};
  for (const auto& [name, change] : cases) {
    INFO(name);
    const fs::path folder = scratch("last-step-" + name);
    fs::copy(ended, folder, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    change(checkpoint_of(folder, 12));
    const Ended again = train(run, folder);
    INFO(again.said);
    CHECK(again.status == 0);
    CHECK_THAT(again.said, Catch::Contains("continuing after step 12 from copies in the memory"));
    CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 12));
    CHECK((state_of(checkpoint_of(folder, 12)) == state_of(latest_checkpoint(trained(run)))));
    CHECK(!fs::exists(folder / "nodes" / "0"));
  }
}

TEST_CASE("a copy that cannot be written is told, training goes on, and the peer has it", "[.nightly]") {
  const RunSpec run = copied_run();
  const fs::path folder = scratch("unwritable");
  fs::create_directories(folder / "nodes" / "1");
  write_bytes(folder / "nodes" / "1" / "local", "in the way");
  Launch launch;
  launch.more = {"--faults", fault_file("step-10", {killed(1, "step: 10, at: optimizer")}), "--max-restarts", "0"};
  const Ended ended = train(run, folder, launch);
  INFO(ended.said);
  CHECK_THAT(ended.said, Catch::Contains("rank 1: the copy of step 3 in the node's memory was not written: ") &&
                             !Catch::Contains("rank 0: the copy"));
  CHECK(steps_of(folder).size() == 9);
  for (int node = 0; node < 4; ++node)
    for (const char* level : {"local", "peer"})
      if (fs::is_directory(folder / "nodes" / std::to_string(node) / level))
        fs::remove_all(copy_file(folder, node, level, 9, 0).parent_path());
  go_on(folder, run, 6, "peer");
}
