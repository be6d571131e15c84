// How a run recovered from faults, from its files: agent.json, generations.jsonl, metrics.jsonl, replayed.jsonl.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// Seconds, one after the other. Negative where the files contradict each other.
struct RecoveryPhases {
  std::optional<double> detect_s;  ///< from the fault to the agent's detection
  double stop_s = 0;               ///< until all ranks have ended
  double start_s = 0;              ///< until the next ranks are connected
  double load_s = 0;               ///< until the state is loaded
  double first_step_s = 0;         ///< until the end of the first step
  double replay_s = 0;             ///< until all earlier steps are repeated
  /// From the detection on, without the replay.
  double recovery_s() const { return stop_s + start_s + load_s + first_step_s; }
};

/// The end of one generation of ranks, and the start of the next.
struct DrillRestart {
  bool relaunch = false;             ///< train itself ended and was called again
  int generation = 0;                ///< the one that ended
  std::int64_t rank = -1;            ///< the rank that ended first or reported the failure; -1 = the agent
  std::vector<std::int64_t> blamed;  ///< ranks that caused it, as far as the agent knows
  std::string cause, message;
  std::string action;  ///< the agent's action ("restart", "without replica 1", "shrink to 2 ranks")
  std::optional<double> fault_unix_s;
  double detected_unix_s = 0, stopped_unix_s = 0;
  std::vector<std::int64_t> nodes;  ///< of the next generation, by place; empty = unchanged
  /// Of the next generation; empty if it did not get that far.
  std::optional<RecoveryPhases> phases;
  std::int64_t resumed_after = -1;
  std::string level;  ///< of the copy that it loaded

  /// Ranks come back; there was no failure.
  bool takes_back() const { return action.starts_with("grow") || rejoins(); }
  /// The other ranks train until the replica joins them.
  bool rejoins() const { return action.find(" rejoin") != std::string::npos; }
};

/// The restarts recorded in an agent.json. Throws Error{usage} naming file and key.
std::vector<DrillRestart> restarts_in(const std::filesystem::path& agent);
/// Adds times and levels from the other files of the folder.
void measure_recoveries(const std::filesystem::path& folder, std::vector<DrillRestart>& restarts);

}  // namespace wt
