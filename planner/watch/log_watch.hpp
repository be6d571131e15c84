// Watches the log of a job that another trainer runs. Without a folder of ours nothing is known of its checkpoints, its
// nodes or its end, so that a human is told and nothing is touched.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/job_logs/log_follower.hpp"
#include "planner/watch/ladder.hpp"
#include "planner/watch/watched_log.hpp"

namespace wt {

struct LogWatchOptions {
  WatchRules rules;
  std::optional<HookCommand> tell = {};  ///< if set, it is run
  std::filesystem::path decisions = {};  ///< file to which they are added; its hooks' output goes beside it
  std::function<double()> clock = {};    ///< unix time [s]
  std::function<void(const nlohmann::json& decision)> on_decision = {};
  std::function<void(const std::string& what)> said = {};  ///< what is unusual in the log, each once
};

class LogWatch {
 public:
  LogWatch(const std::filesystem::path& log, LogWatchOptions options);

  /// Reads what is new, and decides. False once the log says that the job has ended. Throws Error{usage} for a log that
  /// cannot be read any further.
  bool look();
  std::int64_t decisions() const { return decisions_; }
  /// The signals that hold after the last line.
  std::vector<WatchSignal> standing() const { return RunSignals(seen_, rules_).now(); }
  const WatchedLog& seen() const { return seen_; }
  const std::filesystem::path& file() const { return file_; }  ///< as it was given

 private:
  void read();
  void say(const std::string& what);
  void follow(std::optional<WatchVerdict> verdict);
  HookEnd perform(const WatchVerdict& verdict);

  std::filesystem::path file_;
  LogWatchOptions options_;
  WatchRules given_;  ///< that can be applied to a log
  WatchRules rules_;  ///< the same by the metrics that this log has
  LogFollower follower_;
  Ladder ladder_;
  std::vector<LogReading> readings_;
  WatchedLog seen_;
  double looked_unix_s_ = 0;
  std::set<std::string> said_;
  std::int64_t decisions_ = 0;
};

}  // namespace wt
