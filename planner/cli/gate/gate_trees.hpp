// The two source trees that gate run measures, and running commands in them.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

/// `text` quoted as one word of a POSIX shell.
std::string shell_word(const std::string& text);

struct GateTree {
  std::filesystem::path folder;
  std::string commit;    ///< full hash
  bool is_clean = true;  ///< nothing is uncommitted or untracked; always true for a revision's tree
};

/// The git repository of the working folder, and its cache of trees:
/// $WINDTUNNEL_CACHE/gate/NAME-HASH, by default in windtunnel of $XDG_CACHE_HOME or ~/.cache. Holds the lock
/// $WINDTUNNEL_CACHE/gate/lock, because two measurements on one machine disturb each other. Throws Error{usage} outside
/// a repository, Error{undecided} while another process holds the lock.
class GateTrees {
 public:
  GateTrees();
  ~GateTrees();
  GateTrees(const GateTrees&) = delete;
  GateTrees& operator=(const GateTrees&) = delete;

  /// ".": the working tree as it is. Otherwise a worktree of the revision, which is kept with its builds for later
  /// runs; the six most recently used of this repository remain. Throws Error{usage} for an unknown revision.
  GateTree tree(const std::string& revision);
  /// The output of commands is appended to it.
  const std::filesystem::path& log() const { return log_; }

 private:
  std::filesystem::path repository_, cache_, log_;
  int lock_ = -1;
};

/// Runs a bash command in the folder, up to the time limit, and appends its output to `log`. ccache is configured so
/// that trees share objects. Returns whether it exited with status 0; `failure` receives the reason if not.
bool run_in_tree(const GateTree& tree, const std::string& command, double limit_s, const std::filesystem::path& log,
                 std::string& failure);

}  // namespace wt
