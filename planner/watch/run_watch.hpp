// Watches one run folder: reads what the trainer wrote, passes it to the ladder, performs the ladder's actions, and
// logs every decision.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "configs/base/folder_lock.hpp"
#include "planner/watch/hooks.hpp"
#include "planner/watch/ladder.hpp"

namespace wt {

struct RunWatchOptions {
  WatchRules rules;
  std::optional<WatchHooks> hooks = {};  ///< if set, the watch acts
  WatchBaseline baseline = {};
  AskPlanner ask = {};
  /// Returns the median utilisation of the devices, 0..1, for a diagnosis; empty = unknown.
  std::function<std::optional<double>()> utilisation = {};
  std::function<double()> clock = {};  ///< unix time [s]
  /// Called for each decision, also those not logged.
  std::function<void(const nlohmann::json& decision)> on_decision = {};
};

/// The cause of the signals. Silence and slowness: as windtunnel health diagnoses them. A diverged loss: from its
/// signal. Pure.
Diagnosis diagnosis_of(TrainingObservation run, const std::vector<WatchSignal>& signals, const WatchRules& rules,
                       std::optional<double> utilisation);

/// One watch at a time acts on a run. Throws Error{usage} where another one does.
std::unique_ptr<FolderLock> watch_lock(const std::filesystem::path& run);

class RunWatch {
 public:
  /// Throws Error{usage} if the folder has no metrics, if its decisions cannot be read, or if this watch and another
  /// would both act.
  RunWatch(const std::filesystem::path& folder, RunWatchOptions options);

  /// One look at the run, with all actions that follow. False once the run has ended.
  bool look();
  /// The decisions that a logging watch would have made while the run went on. Writes nothing.
  void replay();
  /// A human closes the circuit breaker: restarts count from 0, and returned nodes count as new. Throws Error{usage}
  /// while another watch acts.
  void reset();
  std::int64_t decisions() const { return decisions_; }
  /// The signals that hold after the last step.
  std::vector<WatchSignal> standing();
  /// The run's steps so far.
  const TrainingObservation& seen() { return follower_.look(options_.clock()); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  void follow(std::optional<WatchVerdict> verdict);
  ActionEnd perform(const WatchVerdict& verdict);
  ActionEnd sweep(const HookCommand& command, HookValues values);
  HookEnd start(const HookCommand& command, HookValues values, const WatchAction& action);
  void record(const WatchVerdict& verdict, const HookEnd* end, bool with_ledger);

  std::filesystem::path folder_;
  RunWatchOptions options_;
  std::unique_ptr<FolderLock> lock_;  ///< held if the watch acts
  TrainingFollower follower_;
  Ladder ladder_;
  double looked_unix_s_ = 0;    ///< end of the last step seen in the last look
  bool recorded_ = true;        ///< log decisions to the file
  std::int64_t decisions_ = 0;  ///< since construction
  int sweeps_ = 0;
};

}  // namespace wt
