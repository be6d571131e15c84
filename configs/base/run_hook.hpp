// Running a hook: a process group of its own with a time limit, its words into a log.
#pragma once
#include <filesystem>
#include <string>

#include "configs/base/process.hpp"

namespace wt {

struct HookEnd {
  enum class How {
    ok,         ///< status 0
    failed,     ///< another status, a signal, or it could not be started
    timed_out,  ///< its process group was ended
    no_answer,  ///< of a sweep: ended well, but what it wrote is no fleet that can be judged
    absent,     ///< there is no such hook
  } how = How::ok;
  int status = 0;  ///< exit status, 128 + signal
  double seconds = 0;
  std::string said = {};  ///< why it failed, in a sentence
};
std::string to_string(HookEnd::How how);

/// Runs it to its end in a process group of its own. Standard input is empty, output is added to `log`. At the limit
/// the group is ended (end_group). What it leaves running in the background does not keep it waiting. `ends_with_us`:
/// SIGINT and SIGTERM end this process and its group; without it what was begun goes on. Throws Error{runtime} where
/// the log cannot be written.
HookEnd run_hook(ProcessStart start, double timeout_s, const std::filesystem::path& log, bool ends_with_us = false);

}  // namespace wt
