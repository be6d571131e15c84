// How a run with faults recovered, by its own files: agent.json, generations.jsonl, metrics.jsonl, replayed.jsonl.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// Seconds, one after the other. Negative where the files contradict each other.
struct RecoveryPhases {
  std::optional<double> detect_s;  ///< from the strike to the agent's notice
  double stop_s = 0;               ///< decided, and all ranks gone
  double start_s = 0;              ///< the next ranks are connected
  double load_s = 0;               ///< the state is there
  double first_step_s = 0;         ///< the first step is done
  double replay_s = 0;             ///< all steps that were done before are done again
  /// From the notice on, without the replay.
  double recovery_s() const { return stop_s + start_s + load_s + first_step_s; }
};

/// The end of one generation of ranks and the start of the next.
struct DrillRestart {
  bool relaunch = false;             ///< train itself ended, and was called again
  int generation = 0;                ///< that ended
  std::int64_t rank = -1;            ///< that ended first, or told of the failure; -1 = the agent
  std::vector<std::int64_t> blamed;  ///< ranks that are its cause, as far as the agent knows
  std::string cause, message;
  std::string action;  ///< what the agent did ("restart", "without replica 1", "shrink to 2 ranks")
  std::optional<double> struck_unix_s;
  double detected_unix_s = 0, stopped_unix_s = 0;
  std::vector<std::int64_t> nodes;  ///< of the next generation, by place; empty: as at the start
  /// What the next generation did; none where none got that far.
  std::optional<RecoveryPhases> phases;
  std::int64_t resumed_after = -1;
  std::string level;  ///< where it loaded from

  /// Ranks are back: this answers no failure.
  bool takes_back() const { return action.starts_with("grow") || rejoins(); }
  /// Those that train do so until it joins them.
  bool rejoins() const { return action.find(" rejoin") != std::string::npos; }
};

/// The restarts that an agent.json tells of. Throws Error{usage} naming the file and the key.
std::vector<DrillRestart> restarts_in(const std::filesystem::path& agent);
/// Fills in what the other files of the folder tell of them.
void measure_recoveries(const std::filesystem::path& folder, std::vector<DrillRestart>& restarts);

}  // namespace wt
