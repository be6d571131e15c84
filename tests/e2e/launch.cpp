// The same ranks without our agent: started by hand in torchrun's environment, rank 0 hosting the store.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/json_reader.hpp"
#include "tests/support/launched_ranks.hpp"

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
