#include "trainer/faults/strike.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/file_write.hpp"
#include "configs/base/linked_folder.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr useconds_t kSample_us = 5000;
constexpr double kLook_s = 0.001;

/// Runs `body` in a child process that closes all inherited files, so that it keeps no socket open.
template <typename Body>
void in_a_child(Body&& body) {
  if (fork() != 0) return;
  close_range(3, ~0U, 0);
  body();
  _exit(0);
}

/// The watcher's observations of a stopped process.
struct Samples {
  std::int64_t stopped = 0;
  std::int64_t moved = 0;  ///< samples in another state between two stopped ones
  bool continued = false, ended = false;
};

/// Samples the state of the first process from its stop until it ends or, after `lasts_s`, is continued.
Samples sample(const std::vector<pid_t>& pids, std::optional<double> lasts_s) {
  Samples seen;
  const pid_t pid = pids.front();
  if (!wait_until(5, kLook_s, [&] { return process_state(pid) == 'T' || gone(pid); })) return seen;
  std::int64_t since_stopped = 0;
  for (const double begin = steady_s(); !lasts_s || steady_s() - begin < *lasts_s; usleep(kSample_us)) {
    if (gone(pid)) {
      seen.ended = true;
      return seen;
    }
    if (process_state(pid) != 'T')
      ++since_stopped;  // the process may also just be dying
    else
      ++seen.stopped, seen.moved += std::exchange(since_stopped, 0);
  }
  for (const pid_t stopped : pids) kill(stopped, SIGCONT);
  seen.continued = wait_until(5, kLook_s, [&] { return process_state(pid) != 'T'; });
  return seen;
}

}  // namespace

void kill_victims(const StrikeContext& c) {
  const double begin = steady_s();
  const auto is_own = [](const RankProcess& victim) { return victim.pid == getpid(); };
  for (const RankProcess& victim : c.victims)
    if (!is_own(victim)) kill(victim.pid, SIGKILL);
  const double sent_s = steady_s() - begin;
  const bool all = wait_until(5, kLook_s, [&] {
    return std::ranges::all_of(c.victims,
                               [&](const RankProcess& victim) { return is_own(victim) || gone(victim.pid); });
  });
  const double gone_s = steady_s() - begin;
  json removed = json::array();
  if (c.event.what.takes_local_copies)
    for (const Strike& strike : c.victim_strikes) {
      const fs::path copies = c.self.folder / kNodesFolder / std::to_string(strike.node);
      if (remove_linked_folder(copies)) removed.push_back(copies.filename().string());
    }
  if (c.victims.size() > 1 || c.event.what.takes_local_copies)
    c.log.add(c.strike, {{"others_gone", all}, {"sent_s", sent_s}, {"gone_s", gone_s}, {"copies_removed", removed}});
  if (std::ranges::any_of(c.victims, is_own)) end_with_signal(SIGKILL);
}

void end_with_signal(int number) {
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(number, SIG_DFL);
  kill(getpid(), number);
  for (;;) pause();
}

void stop_processes(const std::vector<pid_t>& pids, const StrikeContext& c) {
  in_a_child([&] {
    const Samples seen = sample(pids, c.event.lasts_s);
    c.log.add(c.strike, {{"samples_stopped", seen.stopped},
                         {"samples_moved", seen.moved},
                         {"continued", seen.continued},
                         {"ended", seen.ended}});
  });
  for (const pid_t pid : pids)
    if (pid != getpid()) kill(pid, SIGSTOP);
  if (std::ranges::count(pids, getpid()) > 0) kill(getpid(), SIGSTOP);
}

void announce_end(pid_t pid, const StrikeContext& c) {
  in_a_child([&] {
    if (!wait_until(c.event.what.notice_s, kLook_s, [&] { return gone(pid); })) kill(pid, SIGKILL);
  });
  kill(pid, c.event.what.signal);
}

json cut_connections(const StrikeContext& c) {
  std::set<int> kept;  // ports of ranks on this side of the partition
  for (const RankProcess& victim : c.victims)
    if (victim.pid != getpid())
      for (const int port : own_ports_of(victim.pid)) kept.insert(port);
  return {{"peer_ports", end_connections(c.self.store_port, kept)}};
}

void limit_files(const StrikeContext& c) {
  const bool too_large = c.event.what.kind == FaultKind::file_too_large;
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit before = limit;
  WriteLimit to;
  if (!too_large) to.bytes = static_cast<std::int64_t>(c.event.what.bytes);
  to.failed = [log = c.log, strike = c.strike, before, limit](int error) mutable {
    rlimit low{};
    getrlimit(RLIMIT_FSIZE, &low);
    setrlimit(RLIMIT_FSIZE, &before);  // the log must not be limited
    log.add(strike, {{"errno", error}, {"text", std::strerror(error)}});
    setrlimit(RLIMIT_FSIZE, &low);
  };
  limit_writes(std::move(to));
  if (!too_large) return;
  limit.rlim_cur = static_cast<rlim_t>(c.event.what.bytes);
  setrlimit(RLIMIT_FSIZE, &limit);
}

json corrupt(HostNumbers numbers, const FaultEffect& what) {
  const std::size_t width = static_cast<std::size_t>(numbers.width);
  if (!what.bit) {
    const std::size_t bytes = static_cast<std::size_t>(numbers.count) * width;
    const unsigned char* data = static_cast<const unsigned char*>(numbers.data);
    const auto nonzero = std::count_if(data, data + bytes, [](unsigned char byte) { return byte != 0; });
    std::memset(numbers.data, 0, bytes);
    return {{"numbers", numbers.count}, {"bytes_not_zero_before", nonzero}, {"after", 0}};
  }
  if (*what.bit >= 8 * numbers.width)
    throw_usage("corrupt: found bit {}, the numbers of the {} have {}; name one of 0..{}", *what.bit,
                to_string(what.tensor), 8 * numbers.width, 8 * numbers.width - 1);
  const std::int64_t element = what.element % std::max<std::int64_t>(numbers.count, 1);
  unsigned char* at = static_cast<unsigned char*>(numbers.data) + static_cast<std::size_t>(element) * width;
  std::uint32_t before = 0, after = 0;
  std::memcpy(&before, at, width);
  at[*what.bit / 8] ^= static_cast<unsigned char>(1U << (*what.bit % 8));
  std::memcpy(&after, at, width);
  return {{"element", element}, {"before", fmt::format("{:08x}", before)}, {"after", fmt::format("{:08x}", after)}};
}

}  // namespace wt
