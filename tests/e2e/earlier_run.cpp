// An output folder that holds what cannot be read: nothing is trained over it, and nothing of it is deleted.
#include <catch2/catch.hpp>
#include <functional>

#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

const std::vector<int> kSteps{2, 4, 6, 8, 10, 12};

void replace_schema(const fs::path& manifest) {
  std::string text = read_bytes(manifest);
  const std::string schema = "windtunnel.checkpoint/3";
  REQUIRE(text.find(schema) != std::string::npos);
  write_bytes(manifest, text.replace(text.find(schema), schema.size(), "windtunnel.checkpoint/4"));
}

/// Spoils every checkpoint in the same way.
std::function<void(const fs::path&)> every(const std::function<void(const fs::path& checkpoint)>& spoil) {
  return [spoil](const fs::path& folder) {
    for (const int step : kSteps) spoil(checkpoint_of(folder, step));
  };
}

}  // namespace

TEST_CASE("where no checkpoint can be read, training ends with an error and leaves every byte as it was") {
  struct Spoilt {
    std::string name;
    std::function<void(const fs::path&)> spoil;
    std::string said;
  };
  const std::vector<Spoilt> all{
      {"other-schema", every([](const fs::path& c) { replace_schema(c / "manifest.json"); }),
       "schema 'windtunnel.checkpoint/4', this build reads windtunnel.checkpoint/3"},
      {"empty-manifests", every([](const fs::path& c) { write_bytes(c / "manifest.json", ""); }), "step-00000012: "},
      {"no-manifests", every([](const fs::path& c) { fs::remove(c / "manifest.json"); }), "step-00000012: "},
      // What root, too, cannot open: a link to itself.
      {"unopenable-manifests", every([](const fs::path& c) {
         fs::remove(c / "manifest.json");
         fs::create_symlink("manifest.json", c / "manifest.json");
       }),
       "step-00000012: "},
      {"damaged-files", every([](const fs::path& c) { flip_byte(shard(c, 1)); }), "another checksum"},
      {"files-for-folders", every([](const fs::path& c) {
         fs::remove_all(c);
         write_bytes(c, "no folder");
       }),
       "step-00000012: "},
      {"unopenable-folder",
       [](const fs::path& folder) {
         fs::rename(folder / "checkpoints", folder / "elsewhere");
         fs::create_symlink("checkpoints", folder / "checkpoints");
       },
       "cannot be listed (Too many levels of symbolic links)"},
      {"not-mounted",
       [](const fs::path& folder) {
         fs::rename(folder / "checkpoints", folder / "elsewhere");
         fs::create_symlink("nowhere", folder / "checkpoints");
       },
       "cannot be listed (No such file or directory)"},
      {"a-file",
       [](const fs::path& folder) {
         fs::rename(folder / "checkpoints", folder / "elsewhere");
         write_bytes(folder / "checkpoints", "no folder");
       },
       "cannot be listed (Not a directory)"},
      {"moved", [](const fs::path& folder) { fs::rename(folder / "checkpoints", folder / "elsewhere"); },
       "checkpoints.jsonl lists some that are gone"},
      {"moved-after-the-first-save",
       [](const fs::path& folder) {
         fs::rename(folder / "checkpoints", folder / "elsewhere");
         fs::remove(folder / "checkpoints.jsonl");
       },
       ".saved says that some were saved"},
      {"renamed", every([](const fs::path& c) { fs::rename(c, c.string() + ".bak"); }),
       "latest names a checkpoint that is not there"}};
  for (const Spoilt& spoilt : all) {
    INFO(spoilt.name);
    const fs::path folder = copy_of_straight_run(spoilt.name);
    spoilt.spoil(folder);
    const auto before = bytes_below(folder);
    RunSpec run = saved_run(14);
    run.keep_checkpoints = 1;
    const Ended ended = train(run, folder);
    INFO(ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Catch::Contains("none that can be read") && Catch::Contains(spoilt.said) &&
                               Catch::Contains("autoresume: false") && !Catch::Contains("generation 1"));
    CHECK((bytes_below(folder) == before));
  }
}

TEST_CASE("nor is anything changed on another number of ranks, without saving or from other weights") {
  const fs::path folder = copy_of_straight_run("all-damaged");
  every([](const fs::path& c) { write_bytes(c / "manifest.json", ""); })(folder);
  const auto before = bytes_below(folder);
  RunSpec fewer = with_layout(saved_run(14), 1, 1, 1), unsaved = saved_run(14);
  unsaved.save = false;
  for (const RunSpec& run : {fewer, unsaved}) {
    CHECK(train(run, folder).status == 2);
    CHECK((bytes_below(folder) == before));
  }
}

TEST_CASE("autoresume: false moves what is there aside and begins anew, once") {
  const fs::path folder = copy_of_straight_run("anew");
  every([](const fs::path& c) { replace_schema(c / "manifest.json"); })(folder);
  const auto before = bytes_below(folder);
  RunSpec run = saved_run(4);
  run.autoresume = false, run.keep_checkpoints = 1;
  Launch launch;
  launch.more = {"--faults", fault_file("in-save", {killed(1, "step: 4, at: checkpoint, after: 0.5")})};
  const Ended ended = train(run, folder, launch);  // what starts again goes on from its own checkpoint
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("was moved to " + (folder / "earlier").string()) &&
                             Catch::Contains("continuing after step 2 "));
  CHECK(read_json(folder / "agent.json").at("restarts").size() == 1);
  CHECK((bytes_below(folder / "earlier") == before));
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{4});
  CHECK(steps_of(folder).size() == 4);

  run.steps = 2;  // a checkpoint that could be read is no other case
  const State second = state_of(checkpoint_of(folder, 4));
  REQUIRE(train(run, folder).status == 0);
  CHECK((state_of(checkpoint_of(folder / "earlier-2", 4)) == second));
  CHECK((bytes_below(folder / "earlier") == before));
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{2});
}

TEST_CASE("a restart whose first generation ended before it moved anything begins anew, and the next one goes on") {
  const fs::path folder = copy_of_straight_run("lost-generation");
  const auto before = bytes_below(folder);
  RunSpec run = with_layout(saved_run(4), 1, 1, 1);
  run.autoresume = false, run.keep_checkpoints = 1;
  for (const int generation : {1, 2}) {
    Launch launch;  // torchrun's second and third
    launch.environment = {{"RANK", "0"},
                          {"WORLD_SIZE", "1"},
                          {"MASTER_PORT", std::to_string(free_port())},
                          {"TORCHELASTIC_RESTART_COUNT", std::to_string(generation)}};
    run.steps = 4 * generation;
    const Ended ended = train(run, folder, launch);
    INFO(ended.said);
    REQUIRE(ended.status == 0);
    CHECK((ended.said.find("continuing after step 4 ") != std::string::npos) == (generation == 2));
    CHECK(steps_of(folder).size() == static_cast<std::size_t>(run.steps));
  }
  CHECK((bytes_below(folder / "earlier") == before));
  CHECK_FALSE(fs::exists(folder / "earlier-2"));
}

TEST_CASE("retention never deletes a checkpoint that cannot be read, newer or older than the one taken") {
  const fs::path folder = copy_of_straight_run("some-damaged");
  replace_schema(checkpoint_of(folder, 4) / "manifest.json");
  const fs::path unopenable = shard(checkpoint_of(folder, 6), 1);
  fs::remove(unopenable);
  fs::create_symlink(unopenable.filename(), unopenable);
  flip_byte(shard(checkpoint_of(folder, 10), 1));
  write_bytes(checkpoint_of(folder, 12) / "manifest.json", "");
  std::map<int, std::map<std::string, std::string>> before;
  for (const int step : {4, 10, 12}) before[step] = bytes_below(checkpoint_of(folder, step));
  RunSpec run = saved_run(12);
  run.keep_checkpoints = 1;
  const Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("continuing after step 8 "));
  CHECK((state_of(checkpoint_of(folder, 12)) == state_of(checkpoint_of(trained(saved_run(12)), 12))));
  CHECK((bytes_below(checkpoint_of(folder, 4)) == before[4]));
  for (const int step : {10, 12})
    CHECK((bytes_below(checkpoint_of(folder, step).string() + ".unreadable") == before[step]));
  CHECK(fs::is_symlink(unopenable));
  for (const int step : {2, 8, 10}) CHECK_FALSE(fs::exists(checkpoint_of(folder, step)));
}
