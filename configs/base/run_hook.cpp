#include "configs/base/run_hook.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "configs/base/clock.hpp"
#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"

namespace wt {
namespace {

/// The log, with a line that says what comes next.
int open_log(const std::filesystem::path& log, const ProcessStart& start) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const std::string line = fmt::format("{}$ {}\n", start.folder.string(), fmt::join(start.words, " "));
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw_runtime("{}: cannot be written: {}", log.string(), std::strerror(errno));
  return file;
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
  return word_for(how, std::array{"ok", "failed", "timed out", "no answer", "no such hook"});
}

HookEnd run_hook(ProcessStart start, double timeout_s, const std::filesystem::path& log, bool ends_with_us) {
  const double begin = steady_s();
  const int file = open_log(log, start);
  start.input = kNoFile, start.output = start.error = file, start.own_group = true;
  HookEnd out;
  pid_t pid = -1;
  try {
    pid = start_process(start);
  } catch (const Error& e) {
    out.how = HookEnd::How::failed, out.status = 127, out.said = e.what();
  }
  close(file);
  if (pid < 0) return out;
  std::optional<SignalsToGroup> signals;
  if (ends_with_us) signals.emplace(pid);
  const std::optional<int> end = wait_for_end(pid, timeout_s);
  if (!end) end_group(pid);
  signals.reset();
  out.seconds = steady_s() - begin;
  if (!end) {
    out.how = HookEnd::How::timed_out;
    out.said = fmt::format("{} did not end within {}", start.words[0], format_seconds(timeout_s));
    return out;
  }
  out.status = exit_status(*end);
  if (out.status == 0) return out;
  out.how = HookEnd::How::failed;
  out.said = fmt::format("{} ended with status {}; its words are in {}", start.words[0], out.status, log.string());
  return out;
}

}  // namespace wt
