#include "trainer/launch/rank_processes.hpp"

#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/launch/notice.hpp"

namespace wt {
namespace {

/// The environment of this process with `own` entries replaced.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& own) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!own.count(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [key, value] : own) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

void pause_briefly() { usleep(5000); }

std::string cause_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

RankProcesses::~RankProcesses() {
  try {
    kill_all();
  } catch (const Error& e) {
    print_error("windtunnel: {}\n", e.what());
  }
}

void RankProcesses::start(std::int64_t rank, std::vector<std::string> command, std::map<std::string, std::string> own) {
  own["WINDTUNNEL_PARENT"] = std::to_string(getpid());
  std::vector<std::string> environment = environment_with(own);
  auto argv = pointers(command), envp = pointers(environment);
  signal(SIGCHLD, SIG_DFL);  // some launchers ignore it, and then exit statuses would be lost
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const sigset_t blocked = notice_signals();
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, argv[0], nullptr, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    throw_error(Code::runtime, "rank {}: {} could not be started: {}", rank, command[0], strerror(failed));
  running_[pid] = rank;
}

std::optional<RankProcesses::Ended> RankProcesses::next_ended() {
  for (const auto& [pid, rank] : running_) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    const Ended ended{rank, status};
    running_.erase(pid);
    return ended;
  }
  return std::nullopt;
}

void RankProcesses::kill_all(double patience_s) {
  stop([](std::int64_t) { return true; }, patience_s);
}

void RankProcesses::keep(const std::vector<std::int64_t>& ranks) {
  const auto place = [&](std::int64_t rank) { return std::find(ranks.begin(), ranks.end(), rank); };
  stop([&](std::int64_t rank) { return place(rank) == ranks.end(); }, kPatience_s);
  for (auto& [pid, rank] : running_) rank = place(rank) - ranks.begin();
}

std::vector<std::int64_t> RankProcesses::in_order() const {
  std::map<std::int64_t, std::int64_t> by_rank;
  for (const auto& [pid, rank] : running_) by_rank[rank] = pid;
  std::vector<std::int64_t> out;
  for (const auto& [rank, pid] : by_rank) out.push_back(pid);
  return out;
}

void RankProcesses::stop(const std::function<bool(std::int64_t)>& which, double patience_s) {
  const double begin = steady_s();
  std::map<pid_t, std::int64_t> stopped;
  for (const auto& [pid, rank] : running_)
    if (which(rank)) stopped[pid] = rank;
  for (const auto& [pid, rank] : stopped) kill(pid, SIGKILL), running_.erase(pid);
  while (!stopped.empty() && steady_s() - begin <= patience_s)
    if (std::erase_if(stopped, [](const auto& process) {
          return waitpid(process.first, nullptr, WNOHANG) == process.first;
        }) == 0)
      pause_briefly();
  if (stopped.empty()) return;
  std::string left;
  for (const auto& [pid, rank] : stopped)
    left += fmt::format("{}rank {} (process {})", left.empty() ? "" : ", ", rank, pid);
  throw_error(
      Code::runtime,
      "{} cannot be killed: still there {:g} s after SIGKILL, waiting for a device or a file system; nothing is "
      "started in its place; restart the machine, then start the run again",
      left, patience_s);
}

}  // namespace wt
