// Runs a user's hook: its own process group, a time limit, output appended to a log.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

struct HookEnd {
  enum class How {
    ok,         ///< status 0
    failed,     ///< another status, a signal, or it could not be started
    timed_out,  ///< its process group was killed
    no_answer,  ///< a sweep hook that exited with 0, but whose output describes no fleet
    absent,     ///< no such hook is configured
  } how = How::ok;
  int status = 0;  ///< exit status, 128 + signal
  double seconds = 0;
  std::string said = {};  ///< the reason of a failure, in a sentence
};
std::string to_string(HookEnd::How how);

/// Runs the command to its end; the program is looked up in PATH. Standard input is empty, output is appended to `log`.
/// At the limit its process group gets SIGTERM, and SIGKILL five seconds later. Processes that it leaves in the
/// background are not waited for. `environment`: entries "NAME=value"; none = inherited. `ends_with_us`: SIGINT and
/// SIGTERM end this process and the group; otherwise the hook runs on. Throws Error{runtime} where the log cannot be
/// written.
HookEnd run_hook(const std::vector<std::string>& words, double timeout_s, const std::filesystem::path& log,
                 const std::optional<std::vector<std::string>>& environment = {}, bool ends_with_us = false);

}  // namespace wt
