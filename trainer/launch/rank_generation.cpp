#include "trainer/launch/rank_generation.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/process.hpp"
#include "trainer/communication/first_failure.hpp"
#include "trainer/communication/generation.hpp"
#include "trainer/communication/membership.hpp"
#include "trainer/communication/rank_progress.hpp"
#include "trainer/communication/storage_progress.hpp"
#include "trainer/launch/rank_processes.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Ranks that report an error themselves end within this time of each other. The first one seen may be a victim.
constexpr double kGrace_s = 0.3;
/// Interval between polls of what the ranks publish.
constexpr double kLook_s = 0.5;

/// Otherwise someone else sent it: the system, or a shutdown of the machine.
bool is_raised_by_itself(int signal) {
  return std::ranges::count(std::array{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU, SIGXFSZ},
                            signal) > 0;
}

c10::intrusive_ptr<c10d::TCPStore> host_store() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

std::vector<std::int64_t> ranks_between(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(end - first));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// For how long a text has not changed.
struct Stillness {
  std::string last;
  double since_s = 0;
  /// To be called with the current text; at_least_s = 0: never.
  bool lasts(const std::string& text, double now, double at_least_s) {
    if (std::exchange(last, text) != text) since_s = now;
    return at_least_s > 0 && now - since_s >= at_least_s;
  }
};

class Watched {
 public:
  Watched(const Generation& generation, GracePeriod& grace)
      : generation_(generation),
        grace_(grace),
        store_(host_store()),
        number_(generation.number),
        world_(generation.world),
        of_ranks_(store_of(number_)),
        started_(steady_s()),
        looked_(started_) {
    enter(number_, world_);
  }

  GenerationEnd run() {
    for (std::int64_t rank = 0; rank < world_; ++rank)
      processes_.start(rank, generation_.command, environment(rank, number_, world_));
    for (watch(); end_.how == GenerationEnd::How::failed; watch()) {
      blame();
      if (go_on_without()) continue;
      processes_.kill_all();
      break;
    }
    end_.stopped_s = steady_s() - started_;
    end_.generation = number_;
    return end_;
  }

 private:
  c10::intrusive_ptr<c10d::PrefixStore> store_of(int number) const {
    return c10::make_intrusive<c10d::PrefixStore>(store_prefix(number), store_);
  }

  /// Until all have ended or a failure is clear. Reports the outcome of the last change before that.
  void watch() {
    while (!processes_.running().empty() && !failure_is_clear()) {
      if (const auto ended = processes_.next_ended()) {
        take(*ended);
        continue;
      }
      heed_notice();
      if (steady_s() - looked_ >= kLook_s) look();
      pause_briefly();
    }
    look_at_change();
  }

  void look() {
    looked_ = steady_s();
    ask_to_end();
    look_for_silence();
    look_at_change();
    joining_ == 0 ? look_for_more_ranks() : look_at_joining();
  }

  /// Reports when all ranks of the next membership train.
  void look_at_change() {
    if (regrouping_ && in_training(*of_ranks_).ranks == world_) tell_regrouped(*std::exchange(regrouping_, {}));
    if (joining_ == 0 || in_training(*store_of(next_)).ranks < world_ + joining_) return;
    enter(next_, world_ + joining_);
    tell_regrouped(joined_);
  }

  /// Ends the replicas of the failed ranks. The others, which wait for it, go on.
  bool go_on_without() {
    if (!silent_.empty() || joining_ > 0 || !generation_.go_on || in_training(*of_ranks_).ranks < world_) return false;
    const std::vector<std::int64_t> ranks = generation_.go_on(end_);
    if (ranks.empty()) return false;
    processes_.keep(ranks);
    regrouping_ = Regrouped{next_, false, 0, end_.detected_s, end_.detected_unix_s, steady_s() - started_, 0};
    publish_membership(*store_, number_, {next_, processes_.in_order(), false});
    enter(next_, static_cast<std::int64_t>(ranks.size()));
    failed_.clear();
    end_ = {};
    return true;
  }

  void look_for_more_ranks() {
    if (!generation_.more_ranks || in_training(*of_ranks_).ranks < world_) return;
    joining_ = generation_.more_ranks();
    joined_ = {next_, true, 0, steady_s() - started_, clock_s(CLOCK_REALTIME), 0, 0};
    for (std::int64_t rank = world_; rank < world_ + joining_; ++rank) {
      auto own = environment(rank, next_, world_ + joining_);
      own["WINDTUNNEL_JOINS"] = "1";
      processes_.start(rank, generation_.command, own);
    }
  }

  /// Tells the training ranks once all joining ranks are ready.
  void look_at_joining() {
    if (!joining_told_ && ready_ranks(*store_of(next_)) == joining_) {
      joining_told_ = true;
      joined_.decided_s = steady_s() - started_;
      publish_membership(*store_, number_, {next_, processes_.in_order(), true});
    }
    const double waited_s = steady_s() - started_ - joined_.begun_s;
    if (!joining_told_ && generation_.silence_s > 0 && waited_s > generation_.silence_s) return give_up_joining();
    if (std::ranges::none_of(processes_.running(), [&](const auto& process) { return process.second < world_; }))
      processes_.kill_all();  // the run ended before they joined
  }

  /// Ranks of this membership, or of the next one once they have been told.
  std::int64_t told_ranks() const { return world_ + (joining_told_ ? joining_ : 0); }

  void give_up_joining() {
    GenerationEnd joiners;
    joiners.how = GenerationEnd::How::failed;
    joiners.generation = number_;
    joiners.rank = world_;
    joiners.ranks = ranks_between(world_, world_ + joining_);
    joiners.cause = "silence";
    joiners.message = fmt::format("ranks that were to join were not ready after {:g} s", generation_.silence_s);
    joiners.detected_s = steady_s() - started_, joiners.detected_unix_s = clock_s(CLOCK_REALTIME);
    processes_.keep(ranks_between(0, world_));
    joiners.stopped_s = steady_s() - started_;
    joining_ = 0;
    ++next_;
    if (generation_.given_up) generation_.given_up(joiners);
  }

  void enter(int number, std::int64_t world) {
    number_ = number, world_ = world;
    next_ = number + 1;
    joining_ = 0, joining_told_ = false;
    of_ranks_ = store_of(number);
    heard_.since_s = moved_.since_s = steady_s();
  }

  void tell_regrouped(Regrouped what) {
    what.steps_done = in_training(*of_ranks_).steps_done;
    what.trains_s = steady_s() - started_;
    if (generation_.regrouped) generation_.regrouped(what);
  }

  std::map<std::string, std::string> environment(std::int64_t rank, int number, std::int64_t world) const {
    std::map<std::string, std::string> out;
    if (generation_.place) out = generation_.place(rank);
    out.insert({{"RANK", std::to_string(rank)},
                {"WORLD_SIZE", std::to_string(world)},
                {"LOCAL_RANK", std::to_string(rank)},
                {"LOCAL_WORLD_SIZE", std::to_string(world)},
                {"MASTER_ADDR", "127.0.0.1"},
                {"MASTER_PORT", std::to_string(store_->getPort())},
                {"TORCHELASTIC_RESTART_COUNT", std::to_string(number)},
                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                {"OMP_NUM_THREADS", "1"}});
    return out;
  }

  bool failure_is_clear() const {
    return !silent_.empty() || (!failed_.empty() && steady_s() - started_ - end_.detected_s >
                                                        (node_goes() ? generation_.node_goes_s : kGrace_s));
  }

  /// Some of a node's ranks were killed and others run, so it is not known yet whether the node is lost.
  bool node_goes() const {
    const auto node_of = [&](std::int64_t rank) { return rank / generation_.ranks_per_node; };
    return std::ranges::any_of(processes_.running(), [&](const auto& process) {
      return std::ranges::any_of(end_.taken,
                                 [&](std::int64_t rank) { return node_of(rank) == node_of(process.second); });
    });
  }

  void detect() {
    if (end_.how == GenerationEnd::How::failed) return;
    end_.how = GenerationEnd::How::failed;
    note_time();
  }

  void note_time() {
    end_.detected_s = steady_s() - started_;
    end_.detected_unix_s = clock_s(CLOCK_REALTIME);
  }

  void take(const RankProcesses::Ended& ended) {
    const bool exited = WIFEXITED(ended.status);
    const bool on_request = exited && WEXITSTATUS(ended.status) == kEndedOnRequest;
    if (on_request && end_.how != GenerationEnd::How::failed) end_.how = GenerationEnd::How::on_request;
    if (on_request || (exited && WEXITSTATUS(ended.status) == 0)) return;
    detect();
    failed_.push_back(ended);
    end_.gone.push_back(ended.rank);
    if (!WIFSIGNALED(ended.status)) return;
    end_.killed.push_back(ended.rank);
    if (!is_raised_by_itself(WTERMSIG(ended.status))) end_.taken.push_back(ended.rank);
  }

  void heed_notice() {
    if (grace_.over(processes_.running(), asked_)) {
      processes_.kill_all();
      throw_runtime("stopped by signal {}; the ranks are gone, the newest checkpoint stays", stop_requested());
    }
  }

  void ask_to_end() {
    if (asked_ || !generation_.asks_to_end || !in_steps() || !generation_.asks_to_end()) return;
    asked_ = true;
    note_time();
    for (const auto& [pid, rank] : processes_.running()) kill(pid, SIGTERM);
  }

  /// Whether all ranks train. Ranks that are still starting would end without a save.
  bool in_steps() {
    for (std::int64_t rank = 0; rank < world_; ++rank)
      if (last_progress(*of_ranks_, rank).find(" of step ") == std::string::npos) return false;
    return true;
  }

  /// Ranks detect silent peers, but not the silence of all.
  void look_for_silence() {
    if (generation_.silence_s == 0 && generation_.still_s == 0) return;
    const auto of_ranks = joining_told_ ? store_of(next_) : of_ranks_;  // the ranks move to it
    std::string heard, moved;
    for (std::int64_t rank = 0; rank < told_ranks(); ++rank) {
      heard += last_progress(*of_ranks, rank);
      moved += last_position(*of_ranks, rank);
    }
    if (of_ranks->check({kStorageMoves})) moved += of_ranks->get_to_str(kStorageMoves);
    if (heard_.lasts(heard, looked_, generation_.silence_s))
      silent_ = fmt::format("no rank has been heard of for {:g} s (dist_timeout)", generation_.silence_s);
    else if (!moved.empty() && moved_.lasts(moved, looked_, generation_.still_s))
      silent_ = fmt::format("no rank has come further for {:g} s; rank 0 is at {}", generation_.still_s,
                            last_position(*of_ranks, 0));
    if (!silent_.empty()) detect();
  }

  /// Joining ranks report in the next generation's store, as do the others once they have moved to it.
  std::optional<Failure> told_failure() const {
    const auto next = joining_ > 0 ? first_failure(*store_of(next_)) : std::nullopt;
    return next ? next : first_failure(*of_ranks_);
  }

  /// The best explanation of a failure, in this order: a killed rank, a rank that refused its configuration, a rank
  /// with an exit status of its own. Otherwise the first failure, which the ranks have agreed on.
  void blame() {
    for (auto* ranks : {&end_.killed, &end_.taken}) std::sort(ranks->begin(), ranks->end());
    std::ranges::sort(end_.gone);
    end_.generation = number_;
    if (!silent_.empty()) return blame_all();
    const auto first = told_failure();
    const auto explains = [&](const RankProcesses::Ended& e) {
      return WIFSIGNALED(e.status)                                    ? 3
             : WEXITSTATUS(e.status) == static_cast<int>(Code::usage) ? 2
             : first && WEXITSTATUS(e.status) != first->status        ? 1
                                                                      : 0;
    };
    const auto culprit = *std::ranges::max_element(failed_, {}, explains);
    end_.rank = culprit.rank;
    end_.cause = cause_of(culprit.status);
    end_.exit_status = WIFEXITED(culprit.status) ? WEXITSTATUS(culprit.status) : 0;
    end_.ranks = end_.killed.empty() ? std::vector{culprit.rank} : end_.killed;
    if (!first || WIFSIGNALED(culprit.status) || end_.exit_status != first->status) return;
    end_.rank = first->rank;
    end_.message = first->text;
    end_.ranks = first->missed.empty() ? std::vector{first->rank} : first->missed;
  }

  void blame_all() {
    end_.rank = 0;
    end_.ranks = ranks_between(0, told_ranks());
    end_.cause = "silence";
    end_.message = silent_;
  }

  const Generation& generation_;
  GracePeriod& grace_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  int number_;
  int next_ = 0;  ///< number of the next generation
  std::int64_t world_;
  c10::intrusive_ptr<c10d::PrefixStore> of_ranks_;
  double started_, looked_;
  Stillness heard_, moved_;  ///< of all that the ranks publish; of where they are
  RankProcesses processes_{generation_.held};
  std::vector<RankProcesses::Ended> failed_;
  bool asked_ = false;
  std::string silent_;  ///< why the generation makes no progress, if no rank can tell
  GenerationEnd end_;
  std::optional<Regrouped> regrouping_;  ///< after a loss, until all train again
  std::int64_t joining_ = 0;             ///< number of ranks started to join
  bool joining_told_ = false;
  Regrouped joined_;
};

}  // namespace

GenerationEnd run_generation(const Generation& generation, GracePeriod& grace) {
  return Watched(generation, grace).run();
}

}  // namespace wt
