// The processes of one generation on this machine: starts, reaps and kills them.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wt {

class RankProcesses {
 public:
  /// `held`: the descriptor of a lock that the processes hold with this one (FolderLock); -1 = none.
  explicit RankProcesses(int held = -1) : held_(held) {}
  /// Kills those that still run.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// `command`: program and arguments. `own`: variables added to this process's environment. Throws Error{runtime}.
  void start(std::int64_t rank, std::vector<std::string> command, std::map<std::string, std::string> own);
  /// By process id.
  const std::map<pid_t, std::int64_t>& running() const { return running_; }

  struct Ended {
    std::int64_t rank = 0;
    int status = 0;  ///< as wait_for_end gives it
  };
  /// A process that has ended since the last call.
  std::optional<Ended> next_ended();
  /// Sends SIGKILL to all. Throws Error{runtime} naming those that still exist after `patience_s`. They may still
  /// write, so nothing may be started in their place.
  void kill_all(double patience_s = kPatience_s);
  /// Kills all except these ranks, which are renumbered in this order from 0.
  void keep(const std::vector<std::int64_t>& ranks);
  /// Process ids in the order of the ranks.
  std::vector<std::int64_t> in_order() const;

  /// Like Slurm's UnkillableStepTimeout: it drains a node whose processes outlive a kill for so long.
  static constexpr double kPatience_s = 60;

 private:
  void stop(const std::function<bool(std::int64_t rank)>& which, double patience_s);
  const int held_;
  std::map<pid_t, std::int64_t> running_;
};

/// The variable that names that descriptor to a rank.
inline constexpr const char* kHeldVariable = "WINDTUNNEL_HELD";

/// Between two looks at what may have changed: 5 ms.
void pause_briefly();

}  // namespace wt
