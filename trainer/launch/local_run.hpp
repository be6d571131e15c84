// A run with all ranks on this machine, as windtunnel train starts it: the agent with the run's files.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

struct LocalRun {
  std::string run_file;
  RunSpec run;
  std::filesystem::path folder;
  std::optional<Scenario> scenario;    ///< virtual nodes and policy; none: every rank is a node, restarted in its place
  std::vector<std::string> arguments;  ///< of train, beside the run file and the folder
  int max_restarts = 3;                ///< where the scenario says nothing
  int held = -1;                       ///< see RankProcesses
};

/// Trains. Writes folder/agent.json at each restart and at the end. False: a notice ended the run early, and it has
/// saved. Throws as train_with_agent.
bool train_on_this_machine(const LocalRun& local);

}  // namespace wt
