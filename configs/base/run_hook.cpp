#include "configs/base/run_hook.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"

extern char** environ;

namespace wt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kGrace_s = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Opens the log and writes a line with the command that follows.
int open_log(const std::filesystem::path& log, const std::vector<std::string>& words) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const std::string line = fmt::format("$ {}\n", fmt::join(words, " "));
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw_error(Code::runtime, "{}: cannot be written: {}", log.string(), std::strerror(errno));
  return file;
}

/// The argument array of execve(2); `words` must outlive it.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

/// Starts the command in its own process group. Returns 0 or the errno.
int start(const std::vector<std::string>& words, const std::optional<std::vector<std::string>>& environment, int log,
          pid_t& pid) {
  std::vector<std::string> owned = words, variables = environment.value_or(std::vector<std::string>());
  const std::vector<char*> argv = pointers(owned), envp = pointers(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO);
  posix_spawnattr_t group;
  posix_spawnattr_init(&group);
  posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  const int failed = posix_spawnp(&pid, argv[0], &files, &group, argv.data(), environment ? envp.data() : environ);
  posix_spawnattr_destroy(&group);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

/// The wait status of `pid`, if it ends within the limit.
std::optional<int> wait_for(pid_t pid, double limit_s) {
  const auto from = Clock::now();
  for (int status = 0;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR)
      throw_error(Code::runtime, "a hook (process {}): how it ended could not be seen: {}", pid, std::strerror(errno));
    if (seconds_since(from) > limit_s) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void end_group(pid_t pid) {
  kill(-pid, SIGTERM);
  const bool ended = wait_for(pid, kGrace_s).has_value();
  kill(-pid, SIGKILL);  // also its children
  if (!ended) waitpid(pid, nullptr, 0);
}

std::atomic<pid_t> group_of_signals = 0;

/// Passes SIGINT and SIGTERM on to the process group, then ends this process by the same signal. Only one such object
/// may exist at a time. Ignored signals stay ignored.
class SignalsToGroup {
 public:
  explicit SignalsToGroup(pid_t group) {
    group_of_signals = group;
    for (std::size_t i = 0; i < 2; ++i) {
      before_[i] = signal(kSignals[i], end_both);
      if (before_[i] == SIG_IGN) signal(kSignals[i], SIG_IGN);
    }
  }
  ~SignalsToGroup() {
    for (std::size_t i = 0; i < 2; ++i) signal(kSignals[i], before_[i]);
  }
  SignalsToGroup(const SignalsToGroup&) = delete;
  SignalsToGroup& operator=(const SignalsToGroup&) = delete;

 private:
  static constexpr int kSignals[2] = {SIGINT, SIGTERM};

  static void end_both(int which) {
    kill(-group_of_signals.load(), SIGTERM);
    signal(which, SIG_DFL);
    raise(which);
  }

  void (*before_[2])(int) = {};
};

}  // namespace

std::string to_string(HookEnd::How how) {
  switch (how) {
    case HookEnd::How::ok:
      return "ok";
    case HookEnd::How::failed:
      return "failed";
    case HookEnd::How::timed_out:
      return "timed out";
    case HookEnd::How::no_answer:
      return "no answer";
    case HookEnd::How::absent:
      return "no such hook";
  }
  return "";
}

HookEnd run_hook(const std::vector<std::string>& words, double timeout_s, const std::filesystem::path& log,
                 const std::optional<std::vector<std::string>>& environment, bool ends_with_us) {
  const auto from = Clock::now();
  const int file = open_log(log, words);
  pid_t pid = -1;
  const int failed = start(words, environment, file, pid);
  close(file);
  HookEnd out;
  if (failed != 0) {
    out.how = HookEnd::How::failed, out.status = 127;
    out.said = fmt::format("{} could not be started: {}", words[0], std::strerror(failed));
    return out;
  }
  std::optional<SignalsToGroup> signals;
  if (ends_with_us) signals.emplace(pid);
  const std::optional<int> status = wait_for(pid, timeout_s);
  if (!status) end_group(pid);
  signals.reset();
  out.seconds = seconds_since(from);
  if (!status) {
    out.how = HookEnd::How::timed_out;
    out.said = fmt::format("{} did not end within {}", words[0], format_seconds(timeout_s));
    return out;
  }
  out.status = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  if (out.status == 0) return out;
  out.how = HookEnd::How::failed;
  out.said = fmt::format("{} ended with status {}; its words are in {}", words[0], out.status, log.string());
  return out;
}

}  // namespace wt
