// A run that was interrupted goes on as if nothing had happened, from the newest checkpoint that is whole, on any
// layout.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/safetensors/sealed_document.hpp"
#include "trainer/safetensors/tensor_parts.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {

void continue_run(const fs::path& folder, const RunSpec& run, const std::string& said) {
  const Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains(said));
}

/// Its last steps done again from the checkpoint of step 2 give the same bits.
void check_continued(const RunSpec& run) {
  static int count = 0;
  INFO(run.layout.name() << ", " << to_string(run.precision) << ", recompute " << to_string(run.layout.recompute));
  const fs::path straight = trained(run), folder = scratch(fmt::format("continued-{}", ++count));
  fs::copy(straight, folder, fs::copy_options::recursive);
  for (std::int64_t step = 4; step <= run.steps; step += 2) fs::remove_all(checkpoint_of(folder, step));
  continue_run(folder, run, "continuing after step 2");
  CHECK(steps_of(folder) == steps_of(straight));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(straight))));
}

}  // namespace

TEST_CASE("eight steps and four more are twelve steps, bit for bit") {
  const fs::path straight = trained(saved_run(12)), folder = scratch("interrupted");
  REQUIRE(train(saved_run(8), folder).status == 0);
  continue_run(folder, saved_run(12), "continuing after step 8");
  CHECK(steps_of(folder) == steps_of(straight));
  const State expected = state_of(latest_checkpoint(straight));
  CHECK(expected.size() ==
        4 * (3 + 3 * (5 + 2 * 8)));  // weight, two moments and the step each of embedding, norm, output and the layers'
  CHECK((state_of(latest_checkpoint(folder)) == expected));
}

TEST_CASE("so they are with state elsewhere, biases that balance experts, multi-token prediction, a loss in pieces") {
  RunSpec biased = saved_run(4);
  biased.model.router.bias_update_rate = 0.01;
  RunSpec modules = saved_run(4);
  modules.model.mtp_layers = 2, modules.layout.recompute = recompute_from_string("block/fp8");
  modules.loss_chunks = 3;
  std::vector<RunSpec> runs{biased, modules, replicated_experts(saved_run(4)).front(),
                            context_runs(saved_run(4)).front()};
  for (const RunSpec& run : further_layouts(saved_run(4)))
    if (run.layout.optimizer_shard > 1) runs.push_back(run);
  REQUIRE(runs.size() > 4);
  for (const RunSpec& run : runs) check_continued(run);
}

TEST_CASE("so they are in bf16, and where block inputs are kept compressed") {
  for (const auto& [precision, recompute] : {std::pair{Precision::bf16, "none"},
                                             {Precision::bf16, "attention+experts/int8"},
                                             {Precision::fp32, "block/fp8"}}) {
    RunSpec run = saved_run(4);
    run.precision = precision, run.layout.recompute = recompute_from_string(recompute);
    check_continued(run);
    CHECK(steps_of(trained(run)) != steps_of(trained(saved_run(4))));  // it was another computation
  }
}

TEST_CASE("retention keeps exactly so many, the newest, and latest names the last") {
  CHECK(checkpoint_steps(trained(saved_run(12))) == std::vector<std::int64_t>{2, 4, 6, 8, 10, 12});
  RunSpec run = saved_run(14);
  run.keep_checkpoints = -1;
  const fs::path all = copy_of_straight_run("retention-of-all"), folder = copy_of_straight_run("retention");
  continue_run(all, run, "continuing after step 12");
  CHECK(checkpoint_steps(all) == std::vector<std::int64_t>{2, 4, 6, 8, 10, 12, 14});
  run.keep_checkpoints = 3;
  continue_run(folder, run, "continuing after step 12");
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{10, 12, 14});
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 14));
  CHECK(leftovers(folder).empty());
}

TEST_CASE("damaged checkpoints are named and passed over, whatever is wrong with them") {
  const fs::path folder = copy_of_straight_run("damaged");
  flip_byte(shard(checkpoint_of(folder, 12), 2));
  fs::resize_file(shard(checkpoint_of(folder, 10), 1), fs::file_size(shard(checkpoint_of(folder, 10), 1)) / 2);
  fs::remove(checkpoint_of(folder, 8) / "manifest.json");
  fs::remove(shard(checkpoint_of(folder, 6), 2));
  fs::resize_file(checkpoint_of(folder, 4) / "manifest.json", 40);
  const Ended ended = train(saved_run(12), folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const std::string damaged = shard(checkpoint_of(trained(saved_run(12)), 12), 2).filename().string();
  for (const std::string& said :
       {"step-00000012 cannot be read and is passed over: " + damaged + ": tensor ", " has another checksum"s,
        "step-00000010 cannot be read and is passed over: shard-00001"s, " has another size"s,
        "step-00000008 cannot be read and is passed over"s, "manifest.json"s,
        "step-00000006 cannot be read and is passed over: " + damaged + " is missing",
        "step-00000004 cannot be read and is passed over"s, "continuing after step 2 "s})
    CHECK_THAT(ended.said, Catch::Contains(said));
  CHECK(steps_of(folder) == steps_of(trained(saved_run(12))));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(saved_run(12))))));
}

TEST_CASE("a manifest that names files outside of its folder, or another step, is refused") {
  const fs::path folder = copy_of_straight_run("foreign-files");
  const auto change = [&](std::int64_t step, const std::function<void(nlohmann::json&)>& spoil) {
    const fs::path file = checkpoint_of(folder, step) / "manifest.json";
    nlohmann::json manifest = read_json(file);
    spoil(manifest);
    write_bytes(file, sealed(manifest).dump());
  };
  const auto first_file = [](nlohmann::json& manifest) -> nlohmann::json& { return manifest["files"][0]["name"]; };
  const auto elsewhere = [&](std::int64_t step, const fs::path& other) {  // the very bytes, so that no checksum tells
    change(step, [&](nlohmann::json& m) {
      const std::string name = first_file(m);
      fs::rename(checkpoint_of(folder, step) / name, other.is_absolute() ? other : checkpoint_of(folder, step) / other);
      first_file(m) = other.string();
    });
  };
  elsewhere(12, "../aside.safetensors");
  elsewhere(10, fs::absolute(folder / "aside-10.safetensors"));
  change(8, [](nlohmann::json& m) { m["step"] = 6; });
  change(6, [](nlohmann::json& m) { m["files"].push_back(m["files"][0]); });
  change(4, [](nlohmann::json& m) { m["files"][0]["name"] = 7; });
  const Ended ended = train(saved_run(12), folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  for (const std::string& said :
       {"step-00000012 cannot be read and is passed over: manifest.json names '../aside"s,
        "step-00000010 cannot be read and is passed over: manifest.json names '/"s,
        "manifest.json is of step-00000006, its folder is step-00000008"s,
        "step-00000006 cannot be read and is passed over: manifest.json names shard-"s,
        "step-00000004 cannot be read and is passed over: manifest.json: "s, "continuing after step 2 "s})
    CHECK_THAT(ended.said, Catch::Contains(said));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(saved_run(12))))));
}

TEST_CASE("a manifest that is not as it was written, or that no sampler can go on from, is passed over") {
  const fs::path folder = copy_of_straight_run("changed-manifests");
  const auto change = [&](std::int64_t step, const std::function<nlohmann::json(nlohmann::json)>& changed) {
    const fs::path file = checkpoint_of(folder, step) / "manifest.json";
    write_bytes(file, changed(read_json(file)).dump(1));
  };
  change(12, [](nlohmann::json m) {  // what one flipped bit makes of a number
    m["sampler"]["sample_in_epoch"] = m["sampler"]["sample_in_epoch"].get<std::int64_t>() ^ 1;
    return m;
  });
  change(10, [](nlohmann::json m) {
    m.erase("xxh3");
    return m;
  });
  change(8, [](nlohmann::json m) {
    m["sampler"] = "nothing";
    return sealed(m);
  });
  change(6, [](nlohmann::json m) { return sealed(m); });  // as it was
  const Ended ended = train(saved_run(12), folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  for (const std::string& said :
       {"step-00000012 cannot be read and is passed over: manifest.json says that its checksum"s,
        "step-00000010 cannot be read and is passed over: manifest.json has no checksum"s,
        "step-00000008 cannot be read and is passed over: "s, "continuing after step 6 "s})
    CHECK_THAT(ended.said, Catch::Contains(said));
  CHECK(steps_of(folder) == steps_of(trained(saved_run(12))));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(saved_run(12))))));
}

TEST_CASE("what a killed save leaves half written is gone at the next start, and nothing else") {
  const fs::path folder = scratch("half-written");
  Launch launch;
  launch.more = {"--faults", fault_file("in-a-save", {killed(0, "step: 6, at: checkpoint, after: 0.5")}),
                 "--max-restarts", "0"};
  CHECK(train(saved_run(12), folder, launch).status != 0);
  CHECK(!leftovers(folder).empty());
  const std::string dead = ".windtunnel-4194305-0.tmp";  // above every process id that Linux gives
  const std::string living = fmt::format(".windtunnel-{}-7.tmp", getpid());
  for (const std::string& name : {dead, living}) write_bytes(folder / name, "half");
  write_bytes(folder / "checkpoints" / dead, "half");
  write_bytes(folder / "mine.partial", "of the user");
  continue_run(folder, saved_run(4), "continuing after step 4 ");  // no step is left, so that none is saved
  CHECK(leftovers(folder).size() == 2);
  CHECK((fs::exists(folder / living) && fs::exists(folder / "mine.partial")));
}

TEST_CASE(
    "a checkpoint is continued on any other layout and world size, larger or smaller: the same samples, losses within "
    "1e-4 over ten steps") {
  using Ranks = std::array<std::int64_t, 3>;  // replicate, shard, expert
  const std::vector<std::pair<Ranks, std::vector<Ranks>>> cases{
      {{2, 2, 2}, {{1, 4, 4}, {4, 1, 1}, {1, 3, 1}, {1, 1, 1}}}, {{1, 1, 1}, {{2, 2, 2}}}, {{3, 1, 1}, {{1, 4, 2}}}};
  RunSpec plain = saved_run(18);
  plain.save_interval = 8;
  plain.optimizer.lr = 3e-4;  // at 3e-3 any two layouts part after 16 steps, resumed or not: rounding flips a route
  const auto on = [&](const Ranks& ranks) { return with_layout(plain, ranks[0], ranks[1], ranks[2]); };
  for (const auto& [from, others] : cases) {
    const fs::path straight = trained(on(from));
    const auto expected = steps_of(straight);
    for (const Ranks& to : others) {
      const RunSpec run = on(to);
      INFO(on(from).layout.name() << " to " << run.layout.name());
      const fs::path folder = scratch(fmt::format("{}x{}-to-{}x{}-{}", from[0], from[1], to[0], to[1], to[2]));
      fs::copy(straight, folder, fs::copy_options::recursive);
      for (const int step : {16, 18}) fs::remove_all(checkpoint_of(folder, step));
      continue_run(folder, run, "continuing after step 8");
      const auto found = steps_of(folder);
      REQUIRE(found.size() == 18);
      for (std::size_t i = 8; i < 18; ++i) {
        CHECK(found[i].samples == expected[i].samples);
        CHECK(found[i].loss == Approx(expected[i].loss).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("a rank killed anywhere in a save leaves the checkpoint before it, and the run goes on from there") {
  for (const auto& [rank, after] : {std::pair{0, "0"}, {0, "1"}, {1, "0.5"}}) {
    INFO(rank << " after " << after);
    const fs::path folder = scratch(fmt::format("killed-{}-{}", rank, after));
    Launch launch;
    launch.more = {"--faults",
                   fault_file("in-save", {killed(rank, fmt::format("step: 6, at: checkpoint, after: {}", after))}),
                   "--max-restarts", "0"};
    CHECK(train(saved_run(12), folder, launch).status != 0);
    CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 4));
    continue_run(folder, saved_run(12), "continuing after step 4 ");
    CHECK(steps_of(folder) == steps_of(trained(saved_run(12))));
    CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(saved_run(12))))));
    CHECK(leftovers(folder).empty());
  }
}

TEST_CASE(
    "a run that died between the last steps of a save goes on: before the folder's name from the one before, after it "
    "from the new one") {
  const fs::path unnamed = copy_of_straight_run("unnamed"), unlinked = copy_of_straight_run("unlinked");
  fs::rename(checkpoint_of(unnamed, 12), checkpoint_of(unnamed, 12).string() + ".partial");
  for (const fs::path& folder : {unnamed, unlinked}) write_bytes(folder / "checkpoints" / "latest", "step-00000010\n");
  continue_run(unnamed, saved_run(14), "continuing after step 10 ");
  continue_run(unlinked, saved_run(14), "continuing after step 12 ");
  CHECK((state_of(latest_checkpoint(unnamed)) == state_of(latest_checkpoint(unlinked))));
  CHECK(leftovers(unnamed).empty());
}

TEST_CASE("a save says how long training stood still and how long it took") {
  const fs::path folder = trained(saved_run(12));
  std::ifstream in(folder / "checkpoints.jsonl");
  std::vector<std::int64_t> steps;
  for (std::string line; std::getline(in, line);) {
    const auto save = nlohmann::json::parse(line);
    steps.push_back(save.at("step"));
    CHECK((save.at("blocking_s") > 0 && save.at("total_s") > save.at("blocking_s") && save.at("bytes") > 0));
  }
  CHECK(steps == std::vector<std::int64_t>{2, 4, 6, 8, 10, 12});
  const auto ranks = read_json(folder / "summary.json").at("ranks");
  CHECK((ranks[0].at("checkpoint_total_s") > ranks[0].at("checkpoint_blocking_s") &&
         ranks[3].at("checkpoint_bytes") == 0));
}

TEST_CASE("a save waits for the one before: as long as training stood still for it, no less and no more") {
  RunSpec run = with_layout(saved_run(5), 1, 2, 2);
  run.save_interval = 1;
  constexpr double kHang_s = 2;  // of the thread that writes, halfway through step 2's
  const fs::path folder = scratch("slow-save"),
                 faults = fault_file("slow-write", {"who: {domain: rank, index: 0}, when: {step: 2, at: checkpoint, "
                                                    "after: 0.5}, what: {kind: hang, of: thread}, lasts: 2s"});
  const Ended ended = train(run, folder, {{"--faults", faults.string()}, {}});
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  std::vector<nlohmann::json> saves(1), steps(1);  // from 1
  std::ifstream saved(folder / "checkpoints.jsonl"), trained(folder / "metrics.jsonl");
  for (std::string line; std::getline(saved, line);) saves.push_back(nlohmann::json::parse(line));
  for (std::string line; std::getline(trained, line);) steps.push_back(nlohmann::json::parse(line));
  REQUIRE((saves.size() == 6 && steps.size() == 6));
  const auto ended_at = [&](std::size_t step) { return steps[step].at("unix_s").get<double>(); };
  const auto blocked_s = [&](std::size_t step) { return saves[step].at("blocking_s").get<double>(); };
  for (std::size_t step = 1; step < 5; ++step)  // a save lies between its step and the next one; the clocks are two
    CHECK(blocked_s(step) <= 0.01 + ended_at(step + 1) - ended_at(step) - steps[step + 1].at("step_s").get<double>());
  CHECK(saves[2].at("total_s") >= kHang_s);
  CHECK(blocked_s(2) < kHang_s);
  CHECK(blocked_s(3) > 0.5 * (kHang_s - (ended_at(3) - ended_at(2))));  // step 3 was done beside the write
}

TEST_CASE("parameters survive a change of layout bit for bit, to fewer ranks, as many and more") {
  for (const auto& [from, to] : {std::pair{saved_run(4), with_layout(saved_run(5), 1, 4, 4)},
                                 {saved_run(4), with_layout(saved_run(5), 1, 3, 1)},
                                 {with_layout(saved_run(4), 1, 1, 1), with_layout(saved_run(5), 2, 2, 2)},
                                 {with_layout(saved_run(4), 1, 2, 2), with_layout(saved_run(5), 1, 3, 1)}}) {
    INFO(from.layout.name() << " to " << to.layout.name());
    const fs::path folder = scratch(fmt::format("no-learning-{}x{}-to-{}x{}", from.layout.replicate, from.layout.shard,
                                                to.layout.replicate, to.layout.shard));
    fs::copy(trained(from), folder, fs::copy_options::recursive);
    RunSpec run = to;
    run.optimizer.lr = 0, run.optimizer.weight_decay = 0;
    continue_run(folder, run, "continuing after step 4");
    const State before = state_of(checkpoint_of(folder, 4)), after = state_of(checkpoint_of(folder, 5));
    CHECK(before.size() == after.size());
    for (const auto& [key, bits] : before)
      if (!is_optimizer_key(key)) CHECK((after.at(key) == bits));
  }
}

TEST_CASE("a checkpoint of another model is refused") {
  const fs::path folder = copy_of_straight_run("other-model");
  RunSpec run = saved_run(14);
  run.model.ffn = 96;
  const Ended ended = train(run, folder);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, Catch::Contains("checkpoint of another model") &&
                             Catch::Contains("model.ffn_config.ffn_hidden_size: the run says 96, it was 104") &&
                             !Catch::Contains("d_model"));  // what is the same is not said
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{2, 4, 6, 8, 10, 12});
}
