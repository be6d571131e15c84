#include "trainer/launch/rank_processes.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/process.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/launch/notice.hpp"

namespace wt {
void pause_briefly() { usleep(5000); }

RankProcesses::~RankProcesses() {
  try {
    kill_all();
  } catch (const Error& e) {
    print_error("windtunnel: {}\n", e.what());
  }
}

void RankProcesses::start(std::int64_t rank, std::vector<std::string> command, std::map<std::string, std::string> own) {
  own[kParentVariable] = std::to_string(getpid());
  if (held_ >= 0) own[kHeldVariable] = std::to_string(held_);
  try {
    running_[start_process({.words = std::move(command),
                            .environment = environment_with(own),
                            .blocked = notice_signals(),
                            .kept = held_})] = rank;
  } catch (const Error& e) {
    throw_error(e.code(), "rank {}: {}", rank, e.what());
  }
}

std::optional<RankProcesses::Ended> RankProcesses::next_ended() {
  for (const auto& [pid, rank] : running_) {
    const std::optional<int> end = wait_for_end(pid, 0);
    if (!end) continue;
    const Ended ended{rank, *end};
    running_.erase(pid);
    return ended;
  }
  return std::nullopt;
}

void RankProcesses::kill_all(double patience_s) {
  stop([](std::int64_t) { return true; }, patience_s);
}

void RankProcesses::keep(const std::vector<std::int64_t>& ranks) {
  const auto place = [&](std::int64_t rank) { return std::ranges::find(ranks, rank); };
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
    if (std::erase_if(stopped, [](const auto& process) { return wait_for_end(process.first, 0).has_value(); }) == 0)
      pause_briefly();
  if (stopped.empty()) return;
  std::string left;
  for (const auto& [pid, rank] : stopped)
    left += fmt::format("{}rank {} (process {})", left.empty() ? "" : ", ", rank, pid);
  throw_runtime(
      "{} cannot be killed: still there {:g} s after SIGKILL, waiting for a device or a file system; nothing is "
      "started in its place; restart the machine, then start the run again",
      left, patience_s);
}

}  // namespace wt
