// The two trees that gate run measures, and the commands that run in them.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace wt {

/// `text` as one word of a POSIX shell.
std::string shell_word(const std::string& text);

struct GateTree {
  std::filesystem::path folder;
  std::string commit;    ///< in full
  bool is_clean = true;  ///< nothing in it is uncommitted or untracked; a revision's tree is
};

/// The git repository that this process works in, and the folder that keeps its trees:
/// $WINDTUNNEL_CACHE/gate/NAME-HASH, without it in windtunnel of $XDG_CACHE_HOME or ~/.cache. Holds the
/// lock $WINDTUNNEL_CACHE/gate/lock, as two measurements on one machine spoil one another. Throws Error{usage} outside
/// a repository, Error{undecided} while another process holds the lock.
class GateTrees {
 public:
  GateTrees();
  ~GateTrees();
  GateTrees(const GateTrees&) = delete;
  GateTrees& operator=(const GateTrees&) = delete;

  /// ".": the working tree as it is. Else a worktree of the revision, kept for the next time with all that was built in
  /// it; of this repository's, the six that were used last stay. Throws Error{usage} for a revision that git does not
  /// know.
  GateTree tree(const std::string& revision);
  /// What commands say is added to it.
  const std::filesystem::path& log() const { return log_; }

 private:
  std::filesystem::path repository_, cache_, log_;
  int lock_ = -1;
};

/// Runs a command of bash in the folder, to its end or the limit, its output to `log`. ccache takes the objects of one
/// tree for the other. Whether it ended with status 0; `said` is why not.
bool run_in_tree(const GateTree& tree, const std::string& command, double limit_s, const std::filesystem::path& log,
                 std::string& said);

}  // namespace wt
