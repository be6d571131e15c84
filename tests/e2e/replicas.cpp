// What changes a number without a message is found by comparing replicas, before anything of it is saved; batches that
// are left out, and the way back to before them.
#include <catch2/catch.hpp>
#include <fstream>

#include "configs/base/json_reader.hpp"
#include "tests/fixtures/saved_run.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

RunSpec compared_run(std::int64_t replicate, std::int64_t shard) {
  RunSpec run = with_layout(saved_run(10), replicate, shard, shard);
  run.resilience.verify_interval = 3;
  return run;
}

/// A bit of the tensor of a rank's layer 1 is flipped.
std::string flipped(std::int64_t rank, const std::string& tensor, const std::string& when) {
  return fmt::format(
      "who: {{domain: rank, index: {}}}, when: {{{}}}, what: {{kind: corrupt, tensor: {}, layer: 1, element: 7, bit: "
      "21}}",
      rank, when, tensor);
}

Ended train_with(const RunSpec& run, const fs::path& folder, const std::string& event, int restarts) {
  Launch launch;
  launch.more = {"--faults", fault_file("faults-" + folder.filename().string(), {event}), "--max-restarts",
                 std::to_string(restarts)};
  return train(run, folder, launch);
}

void check_undisturbed(const RunSpec& run, const fs::path& folder) {
  CHECK(steps_of(folder) == steps_of(trained(run)));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
}

std::vector<nlohmann::json> metrics_of(const fs::path& folder) {
  std::vector<nlohmann::json> out;
  std::ifstream in(folder / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

}  // namespace

TEST_CASE("a gradient that is wrong once is computed again, and its rank named") {
  const RunSpec run = compared_run(2, 2);
  const fs::path folder = scratch("transient");
  const Ended ended = train_with(run, folder, flipped(2, "gradient", "step: 6, at: norm, saved: true"), 0);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("rank 2 on node 2: step 6: its gradients were not those of its replicas"));
  for (const auto& line : metrics_of(folder))
    CHECK(line.value("repeated_for_ranks", std::vector<int>()) ==
          (line.at("step") == 6 ? std::vector<int>{2} : std::vector<int>{}));
  check_undisturbed(run, folder);
}

TEST_CASE("between two comparisons the same fault passes: the test above would see it otherwise") {
  const RunSpec run = compared_run(2, 2);
  const fs::path folder = scratch("unseen");
  const Ended ended = train_with(run, folder, flipped(2, "gradient", "step: 7, at: norm, saved: true"), 0);
  CHECK(ended.status != 0);  // found in the state, before the save after step 8
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 6));
}

TEST_CASE("a weight that changed ends the run before it is saved, names the rank, and the run goes on from before") {
  const RunSpec run = compared_run(4, 1);
  const fs::path folder = scratch("weight");
  const std::string event = flipped(2, "weight", "step: 5, at: norm, saved: true");
  const Ended ended = train_with(run, folder, event, 0);
  INFO(ended.said);
  CHECK(ended.status == 5);
  CHECK_THAT(ended.said,
             Catch::Contains("rank 2 on node 2: step 6: its weights and moments are not those of its replicas"));
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 4));
  const fs::path mended = scratch("weight-mended");
  CHECK(train_with(run, mended, event, 1).status == 0);
  check_undisturbed(run, mended);
}

TEST_CASE("of two replicas that differ, neither is named alone") {
  const Ended ended =
      train_with(compared_run(2, 2), scratch("ambiguous"), flipped(3, "moment", "step: 5, at: norm, saved: true"), 0);
  INFO(ended.said);
  CHECK(ended.status == 5);
  CHECK_THAT(ended.said, Catch::Contains("which of ranks 1 3 is wrong is not known"));
}

TEST_CASE("skipped batches are drawn and listed, not trained on, and a resume goes on exactly") {
  RunSpec run = saved_run(8);
  run.resilience.skipped = {{3, 3}, {5, 6}};
  const auto all = steps_of(trained(saved_run(12))), found = steps_of(trained(run));
  const std::vector<std::size_t> batches{1, 2, 4, 7, 8, 9, 10, 11};
  REQUIRE(found.size() == batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) CHECK(found[i].samples == all[batches[i] - 1].samples);
  std::vector<std::pair<std::size_t, std::int64_t>> listed;
  for (const auto& line : metrics_of(trained(run)))
    for (const auto& skipped : line.value("skipped", nlohmann::json::array())) {
      const auto batch = skipped.at("batch").get<std::size_t>();
      listed.emplace_back(batch, line.at("step"));
      CHECK(skipped.at("samples") == nlohmann::json(all[batch - 1].samples));
    }
  CHECK(listed == std::vector<std::pair<std::size_t, std::int64_t>>{{3, 3}, {5, 4}, {6, 4}});

  const fs::path folder = scratch("skipped-and-killed");
  Launch launch;
  launch.more = {"--faults", fault_file("step-6", {killed(1, "step: 6, at: optimizer")})};
  CHECK(train(run, folder, launch).status == 0);
  check_undisturbed(run, folder);
}

TEST_CASE("a run that is to skip what it was trained on goes back to before it") {
  const fs::path folder = copy_of_straight_run("back");
  RunSpec run = saved_run(10);
  run.resilience.skipped = {{7, 8}};
  const Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Catch::Contains("step-00000008 is passed over: it was trained on batch 7") &&
                             Catch::Contains("continuing after step 6 "));
  CHECK(fs::exists(folder / "checkpoints" / "step-00000012.skipped-batches"));
  check_undisturbed(run, folder);
}
