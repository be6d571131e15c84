// The same ranks without our agent: started by hand in torchrun's environment, rank 0 hosting the store.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/launched_ranks.hpp"

using namespace wt;
using namespace wt::test;

namespace {

void check_by_hand(const LauncherNames& names, const std::string& folder_name) {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.steps = 6, run.save = true;
  const auto folder = scratch(folder_name);
  const std::vector<Started> ranks = start_ranks(run, folder, {}, -1, names);
  for (const Started& rank : ranks) {
    const Ended ended = wait_for(rank);
    INFO(ended.said);
    CHECK(ended.status == 0);
  }
  const auto agent = trained(run);
  CHECK(steps_of(folder).size() == 6);
  CHECK(steps_of(folder) == steps_of(agent));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(agent))));
}

}  // namespace

TEST_CASE("under torchrun's variables the ranks train as under our agent, bit for bit") {
  check_by_hand({"RANK", "WORLD_SIZE", "LOCAL_RANK"}, "torchrun");
}

TEST_CASE("so they do under Slurm's") { check_by_hand({"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}, "slurm"); }

TEST_CASE("batches of device_per_stream are dealt to the nodes that the launcher tells of") {
  RunSpec run = with_layout(small_run(), 2, 1, 1);
  run.steps = 2, run.save = true;
  run.dataset.streams.push_back(run.dataset.streams.front());
  run.dataset.streams.front().name = "once", run.dataset.streams.back().name = "again";
  run.dataset.batching_method = BatchingMethod::device_per_stream;
  const auto ended_under = [&](const std::string& folder, const LauncherNames& names) {
    std::vector<Ended> out;
    for (const Started& rank : start_ranks(run, scratch(folder), {}, -1, names)) out.push_back(wait_for(rank));
    return out;
  };
  const auto ended = [&](const std::string& folder, const std::string& ranks_on_node) {
    return ended_under(folder, {"RANK", "WORLD_SIZE", "LOCAL_RANK", {{"LOCAL_WORLD_SIZE", ranks_on_node}}});
  };
  const auto ended_in_step = [&](const std::string& folder, const std::string& tasks_per_node) {
    return ended_under(folder, {"SLURM_PROCID",
                                "SLURM_NTASKS",
                                "SLURM_LOCALID",
                                {{"SLURM_NNODES", "2"},
                                 {"SLURM_TASKS_PER_NODE", "3,1"},  // the job's, of which the step is a part
                                 {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node}}});
  };
  const auto world_in = [](const std::string& folder) {
    return read_json(latest_checkpoint(scratch(folder)) / "manifest.json").at("sampler").at("batch_world");
  };
  const auto refused_with = [](const std::vector<Ended>& ranks, const std::string& why) {
    std::string said;
    for (const Ended& rank : ranks) {
      said += rank.said;
      CHECK(rank.status == 2);
    }
    CHECK_THAT(said, Catch::Contains(why));
  };
  refused_with(ended("one-canonical-node", "1"), "num_canonical_nodes: found 1 on 2 nodes");
  refused_with(ended("uneven-nodes", "3"),
               "device_per_stream: found 2 ranks that read samples, unevenly on their nodes");
  run.dataset.num_canonical_nodes = 2;
  for (const Ended& rank : ended("two-nodes", "1")) CHECK(rank.status == 0);
  CHECK(world_in("two-nodes") == nlohmann::json{{"nodes", 2}, {"ranks_per_node", 1}});
  run.steps = 4;  // it goes on as it began, wherever its ranks are now
  for (const Ended& rank : ended("two-nodes", "3")) CHECK(rank.status == 0);
  CHECK(world_in("two-nodes") == nlohmann::json{{"nodes", 2}, {"ranks_per_node", 1}});
  CHECK(steps_of(scratch("two-nodes")).size() == 4);
  for (const Ended& rank : ended("one-node", "2")) CHECK(rank.status == 0);
  CHECK(world_in("one-node") == nlohmann::json{{"nodes", 1}, {"ranks_per_node", 2}});
  for (const Ended& rank : ended_in_step("slurm-nodes", "1(x2)")) CHECK(rank.status == 0);
  CHECK(world_in("slurm-nodes") == nlohmann::json{{"nodes", 2}, {"ranks_per_node", 1}});
  run.layout.replicate = 4;
  refused_with(ended_in_step("uneven-slurm-nodes", "3,1"),
               "device_per_stream: found 4 ranks that read samples, unevenly on their nodes");
}

TEST_CASE("a run goes on where nobody reads what it prints, also after a rank was killed") {
  RunSpec run = with_layout(small_run(), 2, 1, 1);
  run.steps = 6, run.save = true, run.save_interval = 2;
  const auto folder = scratch("unread"), file = scratch("unread.yaml");
  write_file_atomically(file, run_to_yaml(run));
  const std::string train = fmt::format("\"$WINDTUNNEL_TRAIN\" train '{}' -o '{}' --faults '{}' ", file.string(),
                                        folder.string(), fault_file("unread-struck", {killed(1, "step: 5")}).string());
  for (const char* reader : {"</dev/null >&- 2>&-", "2>&1 | true"}) {
    INFO(reader);
    std::filesystem::remove_all(folder);
    (void)std::system((train + reader).c_str());
    CHECK(steps_of(folder) == steps_of(trained(run)));
    CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(run)))));
    CHECK(read_json(folder / "agent.json").at("restarts").size() == 1);
  }
}
