#include "trainer/launch/agent.hpp"

#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/running.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/launch/rank_processes.hpp"
#include "trainer/recovery/recovery.hpp"

namespace wt {
namespace {

/// The ranks' own limit should come first. Before they first publish, a busy machine may take some time.
constexpr double kSilenceMore_s = 30;

std::string who_and_how(const GenerationEnd& end) { return fmt::format("rank {} ended with {}", end.rank, end.cause); }

[[noreturn]] void refuse(const GenerationEnd& end) { throw_usage("{}; see its message above", who_and_how(end)); }

bool ended_as(const GenerationEnd& end, Code code) { return end.exit_status == static_cast<int>(code); }
bool refused(const GenerationEnd& end) { return ended_as(end, Code::usage); }

class Agent {
 public:
  explicit Agent(const AgentOptions& options)
      : options_(options),
        fleet_(options.run, options.nodes, options.policy.min_replicas),
        recoveries_(options.policy, fleet_),
        grace_(options.run.resilience.grace_period_s) {}

  AgentResult run() {
    for (;;) {
      const GenerationEnd end = run_generation(++number_);
      const bool on_request = end.how == GenerationEnd::How::on_request;
      if (end.how == GenerationEnd::How::finished || (on_request && (!growing_ || stop_requested() != 0))) {
        result_.ended_on_request = on_request;
        note();
        return result_;
      }
      RestartRecord record = record_of(end);
      if (std::exchange(growing_, false) && on_request)
        grow(record);
      else
        recover(record);
    }
  }

 private:
  GenerationEnd run_generation(int number) {
    Generation generation;
    generation.number = number;
    generation.command = options_.command(fleet_.run());
    generation.held = options_.held;
    generation.world = fleet_.world();
    generation.ranks_per_node = fleet_.ranks_per_node();
    generation.silence_s = options_.run.dist_timeout_s + kSilenceMore_s;
    generation.still_s = generation.silence_s + 2 * kStoragePatience_s;  // outside of collectives: wait_for()
    generation.place = [&](std::int64_t rank) -> std::map<std::string, std::string> {
      return {{"WINDTUNNEL_NODE", std::to_string(fleet_.node_of(rank))},
              {"GROUP_RANK", std::to_string(rank / fleet_.ranks_per_node())}};
    };
    generation.asks_to_end = [&] { return can_grow(); };
    generation.go_on = [&](const GenerationEnd& loss) { return go_on_without(loss); };
    generation.more_ranks = [&] { return more_ranks(); };
    generation.given_up = [&](const GenerationEnd& joiners) { given_up(joiners); };
    generation.regrouped = [&](const Regrouped& what) { regrouped(what); };
    return wt::run_generation(generation, grace_);
  }

  /// Only if the ranks lose nothing: their state is saved when they end.
  bool can_grow() {
    if (fleet_.missing_replicas() > 0) return false;
    growing_ = fleet_.take_back(steady_s()) && options_.run.save && fleet_.can_grow();
    return growing_;
  }

  /// The ranks of this generation that go on, without replicas that lost ranks.
  std::vector<std::int64_t> go_on_without(const GenerationEnd& loss) {
    RestartRecord record = record_of(loss);
    // After a silent error the others' memory is wrong as well: only compared state is known to be right. Ranks that
    // were asked to end for a larger world do not wait, and neither do ranks without steps left.
    if (refused(loss) || ended_as(loss, Code::silent) || growing_ || stop_requested() != 0 ||
        record.reached.steps_done == options_.run.steps || failures_ >= options_.max_restarts)
      return {};
    std::set<std::int64_t> ranks(loss.gone.begin(), loss.gone.end());
    ranks.insert(loss.ranks.begin(), loss.ranks.end());
    const std::int64_t of_replica = fleet_.world() / fleet_.run().layout.replicate;
    const auto left = recoveries_.go_on_without(failure_of(record), {ranks.begin(), ranks.end()});
    if (left.empty()) return {};
    ++failures_;
    regrouping_ = true;
    std::set<std::int64_t> replicas;
    for (const std::int64_t rank : ranks) replicas.insert(rank / of_replica);
    record.policy = "without " + names_of(replicas);
    record.end.stopped_s = loss.detected_s;
    go_on(record, ++number_);
    return left;
  }

  std::int64_t more_ranks() {
    if (fleet_.missing_replicas() == 0) return 0;
    fleet_.take_back(steady_s());
    const std::int64_t before = fleet_.run().layout.replicate, back = fleet_.add_replicas();
    rejoining_.clear();
    for (std::int64_t replica = before; replica < before + back; ++replica) rejoining_.insert(replica);
    if (back > 0) ++number_;
    return back * fleet_.world() / (before + back);
  }

  void given_up(const GenerationEnd& joiners) {
    RestartRecord record = record_of(joiners);
    const Fleet::Losses lost = recoveries_.lost_by_silence(failure_of(record));
    fleet_.undo_added(static_cast<std::int64_t>(rejoining_.size()), lost);
    record.policy = fmt::format("still without {}", names_of(rejoining_));
    go_on(record, record.generation);
  }

  void regrouped(const Regrouped& what) {
    regrouping_ = false;
    if (!what.joined) {
      result_.restarts.back().regrouped = what;
      return note();
    }
    GenerationEnd end;
    end.generation = what.generation - 1;
    end.how = GenerationEnd::How::on_request;
    end.cause = "nodes are back";
    end.detected_s = what.begun_s, end.detected_unix_s = what.begun_unix_s, end.stopped_s = what.decided_s;
    RestartRecord record = record_of(end);
    record.regrouped = what;
    record.policy = fmt::format("{} {} after step {}", names_of(rejoining_),
                                rejoining_.size() > 1 ? "rejoin" : "rejoins", what.steps_done);
    go_on(record, what.generation);
  }

  static std::string names_of(const std::set<std::int64_t>& replicas) {
    return fmt::format("replica{} {}", replicas.size() > 1 ? "s" : "", fmt::join(replicas, ", "));
  }

  RestartRecord record_of(const GenerationEnd& end) const {
    RestartRecord record;
    record.generation = end.generation;
    record.end = end;
    for (const std::int64_t rank : end.ranks) record.ranks_nodes.push_back(fleet_.node_of(rank));
    record.reached = options_.progress();
    return record;
  }

  std::string grow() {
    fleet_.grow();
    return fmt::format("grow to {} ranks", fleet_.world());
  }

  void grow(RestartRecord& record) {
    record.end.cause = "nodes are back";
    record.policy = grow();
    go_on(record, number_ + 1);
  }

  void recover(RestartRecord& record) {
    const GenerationEnd& end = record.end;
    if (refused(end)) refuse(end);
    if (stop_requested() != 0)
      throw_runtime("stopped by signal {}; {} meanwhile, the newest checkpoint stays", stop_requested(),
                    who_and_how(end));
    // A rank that ends before all train again mostly ends for the same cause.
    const bool another = !std::exchange(regrouping_, false);
    if (another && failures_ >= options_.max_restarts)
      give_up(record, ended_as(end, Code::silent) ? Code::silent : Code::runtime,
              fmt::format("{} restarts were allowed", options_.max_restarts));
    failures_ += another ? 1 : 0;
    fleet_.take_back(steady_s());
    const RecoveryDecision decision = recoveries_.after(failure_of(record), steady_s());
    if (!decision.goes_on) give_up(record, Code::final, decision.action);
    if (!fleet_.complete()) give_up(record, Code::final, "no layout of the run fits the nodes that are left");
    record.policy = decision.action + (fleet_.can_grow() ? ", " + grow() : "");
    go_on(record, number_ + 1);
    wait(decision.wait_s);
  }

  RankFailure failure_of(const RestartRecord& record) const {
    return {record.end.ranks, record.end.cause, lost_nodes(record), record.reached.safe_step};
  }

  /// Nodes whose ranks were all killed from outside.
  Fleet::Losses lost_nodes(const RestartRecord& record) const {
    std::map<std::int64_t, std::int64_t> taken;
    for (const std::int64_t rank : record.end.taken) ++taken[fleet_.node_of(rank)];
    Fleet::Losses out;
    for (const auto& [node, ranks] : taken) {
      if (ranks < fleet_.ranks_per_node()) continue;
      const auto repair = options_.repair_s ? options_.repair_s(record.generation, node) : std::nullopt;
      out[node] = repair ? std::optional(steady_s() + *repair) : std::nullopt;
    }
    return out;
  }

  [[noreturn]] void give_up(RestartRecord& record, Code code, const std::string& why) {
    record.policy = why;
    result_.restarts.push_back(record);
    note();
    throw_error(code, "{}; {}; see its message above", who_and_how(record.end), why);
  }

  void go_on(RestartRecord& record, int next) {
    record.layout = fleet_.run().layout.name();
    record.nodes = fleet_.nodes();
    record.excluded = fleet_.excluded();
    result_.restarts.push_back(record);
    note();
    const GenerationEnd& end = record.end;
    const std::string what = end.how == GenerationEnd::How::failed
                                 ? fmt::format("{} after {:.1f} s", who_and_how(end), end.detected_s)
                                 : end.cause;
    print_error("{}; {}: generation {}, {}\n", what, record.policy, next, record.layout);
  }

  void wait(double seconds) {
    const double until = steady_s() + seconds;
    while (steady_s() < until) {
      if (stop_requested() != 0)
        throw_runtime("stopped by signal {} while waiting for nodes; the newest checkpoint stays", stop_requested());
      pause_briefly();
    }
  }

  void note() {
    result_.wall_s = steady_s() - begin_;
    result_.excluded = fleet_.excluded();
    if (options_.record) options_.record(result_);
  }

  const AgentOptions& options_;
  Fleet fleet_;
  Recoveries recoveries_;
  GracePeriod grace_;
  AgentResult result_;
  int failures_ = 0;
  int number_ = -1;                   ///< of the newest generation
  std::set<std::int64_t> rejoining_;  ///< replicas, by their current number
  bool growing_ = false;
  bool regrouping_ = false;  ///< after a loss, until all train again
  double begin_ = steady_s();
};

}  // namespace

void end_with_launcher() {
  const char* agent = std::getenv("WINDTUNNEL_PARENT");
  if (!agent && !std::getenv("TORCHELASTIC_RUN_ID")) return;
  const std::string parent = agent ? agent : std::to_string(getppid());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) == parent) return;
  // A script between the two is none.
  if (!is_running(std::atoi(parent.c_str()))) throw_runtime("the launcher {} is gone", parent);
}

AgentResult train_with_agent(const AgentOptions& options) {
  catch_stop_signals();
  return Agent(options).run();
}

void run_ranks(const std::vector<std::string>& command, std::int64_t ranks) {
  catch_stop_signals();
  GracePeriod none(0);
  const GenerationEnd end = run_generation({.command = command, .world = ranks}, none);
  if (end.how != GenerationEnd::How::failed) return;
  if (refused(end)) refuse(end);
  throw_runtime("{}; see its message above", who_and_how(end));
}

}  // namespace wt
