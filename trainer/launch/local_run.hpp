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
  std::optional<Scenario> scenario;  ///< virtual nodes and policy; empty: each rank is a node and restarts in its place
  std::vector<std::string> arguments;  ///< of train, in addition to run file and folder
  int max_restarts = 3;                ///< used if the scenario has none
};

/// Trains. Writes folder/agent.json at each restart and at the end. False: a notice ended the run early, and it has
/// saved. Throws as train_with_agent.
bool train_on_this_machine(const LocalRun& local);

}  // namespace wt
