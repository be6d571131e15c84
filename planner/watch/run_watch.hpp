// Watching one run folder: reads what the trainer wrote, shows it to the ladder, does what that asks for, and writes
// every decision down.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "configs/base/folder_lock.hpp"
#include "planner/watch/hooks.hpp"
#include "planner/watch/ladder.hpp"

namespace wt {

struct RunWatchOptions {
  WatchRules rules;
  std::optional<WatchHooks> hooks = {};  ///< given: it acts
  WatchBaseline baseline = {};
  AskPlanner ask = {};
  /// Median utilisation of the devices, 0..1, asked for where something is wrong; none = not known.
  std::function<std::optional<double>()> utilisation = {};
  std::function<double()> clock = {};  ///< unix time [s]
  std::function<void(const nlohmann::json& decision)> said =
      {};  ///< each decision, also those that were not written down
};

/// Why signals are there: silence and slowness as windtunnel health says; a lost loss by its signal. Pure.
Diagnosis diagnosis_of(TrainingObservation run, const std::vector<WatchSignal>& signals, const WatchRules& rules,
                       std::optional<double> utilisation);

/// One watch at a time acts on a run. Throws Error{usage} where another one does.
std::unique_ptr<FolderLock> watch_lock(const std::filesystem::path& run);

class RunWatch {
 public:
  /// Throws Error{usage} where the folder has no metrics, its decisions cannot be read, or this one acts and another
  /// one does so, too.
  RunWatch(const std::filesystem::path& folder, RunWatchOptions options);

  /// One look, with all actions that follow from it. False once the run has ended.
  bool look();
  /// The decisions that a watch which only logs would have come to while the run went on. Nothing is written down.
  void replay();
  /// A human closes the circuit breaker: causes count from 0, and who is back is as new. Throws Error{usage} while
  /// another watch acts.
  void reset();
  std::int64_t decisions() const { return decisions_; }
  /// Its steps as they are now.
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
  std::unique_ptr<FolderLock> lock_;  ///< where it acts
  TrainingFollower follower_;
  Ladder ladder_;
  double looked_unix_s_ = 0;    ///< end of the last step that was there at the last look
  bool recorded_ = true;        ///< decisions go into the file
  std::int64_t decisions_ = 0;  ///< since it was made
  int sweeps_ = 0;
};

}  // namespace wt
