// Runs a user's hook: its own process group, a time limit, output appended to a log.
#pragma once
#include <filesystem>
#include <string>

#include "configs/base/process.hpp"

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

/// Runs it to its end in a process group of its own. Standard input is empty, output is added to `log`. At the limit
/// the group is ended (end_group). What it leaves running in the background does not keep it waiting. `ends_with_us`:
/// SIGINT and SIGTERM end this process and its group; without it what was begun goes on. Throws Error{runtime} where
/// the log cannot be written.
HookEnd run_hook(ProcessStart start, double timeout_s, const std::filesystem::path& log, bool ends_with_us = false);

}  // namespace wt
