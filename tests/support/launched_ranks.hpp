// Ranks without our agent: each started by hand in torchrun's environment, rank 0 hosting the store.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/trainer_fixture.hpp"

namespace wt::test {

/// Variable names of a launcher.
struct LauncherNames {
  std::string rank = "RANK", world = "WORLD_SIZE", local_rank = "LOCAL_RANK";
  std::map<std::string, std::string> more = {};  ///< that it sets, with their values
};

int free_port();
/// Starts the ranks of the run's layout, or only the first `ranks` of them. `change` may give a rank a run of its own.
std::vector<Started> start_ranks(const RunSpec& run, const std::filesystem::path& folder,
                                 const std::function<void(RunSpec&, int rank)>& change = {}, int ranks = -1,
                                 const LauncherNames& names = {});
/// The same with run files that are there already: one a rank, or one for all.
std::vector<Started> start_ranks(const std::vector<std::filesystem::path>& run_files, int world,
                                 const std::filesystem::path& folder, const LauncherNames& names = {});
/// Process id of a rank that the agent started.
pid_t rank_process(pid_t agent, int rank);

}  // namespace wt::test
