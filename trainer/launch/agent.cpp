#include "trainer/launch/agent.hpp"

#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "configs/spec/support/error.hpp"
#include "trainer/communication/first_failure.hpp"
#include "trainer/communication/rank_environment.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/pch.hpp"

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

pid_t start_rank(std::vector<std::string> command, std::int64_t rank, std::int64_t world, int port, int generation) {
  std::vector<std::string> environment = environment_with({{"RANK", std::to_string(rank)},
                                                           {"WORLD_SIZE", std::to_string(world)},
                                                           {"LOCAL_RANK", std::to_string(rank)},
                                                           {"LOCAL_WORLD_SIZE", std::to_string(world)},
                                                           {"MASTER_ADDR", "127.0.0.1"},
                                                           {"MASTER_PORT", std::to_string(port)},
                                                           {"TORCHELASTIC_RESTART_COUNT", std::to_string(generation)},
                                                           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                           {"OMP_NUM_THREADS", "1"},
                                                           {"WINDTUNNEL_PARENT", std::to_string(getpid())}});
  auto argv = pointers(command), envp = pointers(environment);
  pid_t pid = -1;
  if (const int failed = posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), envp.data()); failed != 0)
    throw_error(Code::runtime, "rank {}: {} could not be started: {}", rank, command[0], strerror(failed));
  return pid;
}

std::string cause_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

void stop_all(std::map<pid_t, std::int64_t>& running) {
  for (const auto& [pid, rank] : running) kill(pid, SIGKILL);
  for (const auto& [pid, rank] : running) waitpid(pid, nullptr, 0);
  running.clear();
}

/// A rank that ended by itself has told the others why, unless it was a victim: then the first failure is another
/// rank's.
void name_first_failure(const c10::intrusive_ptr<c10d::TCPStore>& store, int generation, RestartRecord& failure,
                        int& status) {
  c10d::PrefixStore of_ranks(store_prefix(generation), store);
  const auto first = first_failure(of_ranks);
  // One that had no time to hear of it ended with a status of its own.
  if (!first || WIFSIGNALED(status) || WEXITSTATUS(status) != first->status) return;
  failure.rank = first->rank;
  failure.message = first->text;
  failure.cause = fmt::format("exit status {}", first->status);
  status = first->status << 8;  // as waitpid gives it
}

/// Ranks that report an error themselves end within this time of each other; the first one seen may be a victim.
constexpr double kGraceSeconds = 0.3;
constexpr useconds_t kPollMicroseconds = 5000;

}  // namespace

void end_with_agent() {
  const char* parent = std::getenv("WINDTUNNEL_PARENT");
  if (!parent) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) != parent) throw_error(Code::runtime, "the agent {} is gone", parent);
}

AgentResult run_ranks(const std::vector<std::string>& command, const AgentOptions& options) {
  catch_stop_signals();
  GracePeriod grace(options.grace_period_s);
  AgentResult result;
  const double begin = Clocks::now().wall_s;
  std::string reached_before;
  for (int generation = 0;; ++generation) {
    c10d::TCPStoreOptions store_options;
    store_options.port = 0;
    store_options.isServer = true;
    store_options.waitWorkers = false;
    const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store_options);
    const double started = Clocks::now().wall_s;
    std::map<pid_t, std::int64_t> running;
    try {
      for (std::int64_t rank = 0; rank < options.ranks; ++rank)
        running[start_rank(command, rank, options.ranks, store->getPort(), generation)] = rank;
    } catch (...) {
      stop_all(running);
      throw;
    }

    RestartRecord failure;
    int failed_status = 0;
    while (!running.empty()) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (grace.over(running)) {
        stop_all(running);
        throw_error(Code::runtime, "stopped by signal {}; the ranks are gone, the newest checkpoint stays",
                    stop_requested());
      }
      if (pid <= 0 || !running.count(pid)) {
        if (failure.rank >= 0 && Clocks::now().wall_s - started - failure.detected_s > kGraceSeconds) break;
        usleep(kPollMicroseconds);
        continue;
      }
      const std::int64_t rank = running[pid];
      running.erase(pid);
      const bool on_request = WIFEXITED(status) && WEXITSTATUS(status) == kEndedOnRequest;
      result.ended_on_request |= on_request;
      const bool ended_well = on_request || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
      // A rank that was killed, or refused its configuration, explains more than one that lost its peer.
      if (!ended_well && (failure.rank < 0 || WIFSIGNALED(status) || WEXITSTATUS(status) == 2)) {
        if (failure.rank < 0) {
          failure.detected_s = Clocks::now().wall_s - started;
          failure.detected_unix_s = clock_s(CLOCK_REALTIME);
        }
        failure.rank = rank;
        failure.cause = cause_of(status);
        failed_status = status;
      }
    }
    if (failure.rank < 0) break;
    name_first_failure(store, generation, failure, failed_status);
    stop_all(running);
    if (stop_requested() != 0)
      throw_error(Code::runtime, "stopped by signal {}; rank {} ended with {} meanwhile, the newest checkpoint stays",
                  stop_requested(), failure.rank, failure.cause);
    failure.generation = generation;
    failure.stopped_s = Clocks::now().wall_s - started;
    result.restarts.push_back(failure);
    if (options.progress) result.restarts.back().reached = options.progress();
    const std::string& reached = result.restarts.back().reached.checkpoint;
    const bool stuck = generation > 0 && options.progress && reached == reached_before;
    reached_before = reached;
    const auto ended_as = [&](Code code) {
      return WIFEXITED(failed_status) && WEXITSTATUS(failed_status) == static_cast<int>(code);
    };
    const bool refused = ended_as(Code::usage);
    if (refused || stuck || generation >= options.max_restarts)
      throw_error(refused                  ? Code::usage
                  : ended_as(Code::silent) ? Code::silent
                                           : Code::runtime,
                  "rank {} ended with {}{}", failure.rank, failure.cause,
                  refused ? "; see its message above"
                  : stuck ? ", twice without a new checkpoint in between; see its message above"
                          : fmt::format(" and {} restarts were allowed", options.max_restarts));
    fmt::print(stderr, "rank {} ended with {} after {:.1f} s; starting generation {}\n", failure.rank, failure.cause,
               failure.detected_s, generation + 1);
  }
  result.wall_s = Clocks::now().wall_s - begin;
  return result;
}

}  // namespace wt
