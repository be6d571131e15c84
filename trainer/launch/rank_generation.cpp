#include "trainer/launch/rank_generation.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "configs/spec/support/error.hpp"
#include "trainer/communication/first_failure.hpp"
#include "trainer/communication/generation.hpp"
#include "trainer/communication/rank_watch.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/launch/rank_processes.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Ranks that report an error themselves end within this time of each other; the first one seen may be a victim.
constexpr double kGrace_s = 0.3;
/// Between two looks at what the ranks publish.
constexpr double kLook_s = 0.5;

c10::intrusive_ptr<c10d::TCPStore> host_store() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

class Watched {
 public:
  Watched(const Generation& generation, GracePeriod& grace)
      : generation_(generation),
        grace_(grace),
        store_(host_store()),
        of_ranks_(c10::make_intrusive<c10d::PrefixStore>(store_prefix(generation.number), store_)),
        started_(now_s()),
        looked_(started_),
        heard_(started_) {}

  GenerationEnd run() {
    for (std::int64_t rank = 0; rank < generation_.world; ++rank)
      processes_.start(rank, generation_.command, environment(rank));
    while (!processes_.running().empty() && !failure_is_clear()) {
      if (const auto ended = processes_.next_ended()) {
        take(*ended);
        continue;
      }
      heed_notice();
      look_for_silence();
      pause_briefly();
    }
    if (end_.how == GenerationEnd::How::failed) {
      blame();
      processes_.kill_all();
    }
    end_.stopped_s = now_s() - started_;
    return end_;
  }

 private:
  std::map<std::string, std::string> environment(std::int64_t rank) const {
    std::map<std::string, std::string> out;
    if (generation_.place) out = generation_.place(rank);
    out.insert({{"RANK", std::to_string(rank)},
                {"WORLD_SIZE", std::to_string(generation_.world)},
                {"LOCAL_RANK", std::to_string(rank)},
                {"LOCAL_WORLD_SIZE", std::to_string(generation_.world)},
                {"MASTER_ADDR", "127.0.0.1"},
                {"MASTER_PORT", std::to_string(store_->getPort())},
                {"TORCHELASTIC_RESTART_COUNT", std::to_string(generation_.number)},
                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                {"OMP_NUM_THREADS", "1"}});
    return out;
  }

  bool failure_is_clear() const {
    return silent_ || (!failed_.empty() && now_s() - started_ - end_.detected_s > kGrace_s);
  }

  void detect() {
    if (end_.how == GenerationEnd::How::failed) return;
    end_.how = GenerationEnd::How::failed;
    note_time();
  }

  void note_time() {
    end_.detected_s = now_s() - started_;
    end_.detected_unix_s = clock_s(CLOCK_REALTIME);
  }

  void take(const RankProcesses::Ended& ended) {
    const bool exited = WIFEXITED(ended.status);
    const bool on_request = exited && WEXITSTATUS(ended.status) == kEndedOnRequest;
    if (on_request && end_.how != GenerationEnd::How::failed) end_.how = GenerationEnd::How::on_request;
    if (on_request || (exited && WEXITSTATUS(ended.status) == 0)) return;
    detect();
    failed_.push_back(ended);
    if (WIFSIGNALED(ended.status)) end_.killed.push_back(ended.rank);
  }

  void heed_notice() {
    if (grace_.over(processes_.running(), asked_)) {
      processes_.kill_all();
      throw_error(Code::runtime, "stopped by signal {}; the ranks are gone, the newest checkpoint stays",
                  stop_requested());
    }
    if (asked_ || !generation_.asks_to_end || now_s() - looked_ < kLook_s) return;
    if (!in_steps() || !generation_.asks_to_end()) return;
    asked_ = true;
    note_time();
    for (const auto& [pid, rank] : processes_.running()) kill(pid, SIGTERM);
  }

  /// Ranks that still start would end without a save.
  bool in_steps() {
    for (std::int64_t rank = 0; rank < generation_.world; ++rank)
      if (last_progress(*of_ranks_, rank).find(" of step ") == std::string::npos) return false;
    return true;
  }

  /// Ranks miss one another; nobody misses them all.
  void look_for_silence() {
    if (generation_.silence_s == 0 || now_s() - looked_ < kLook_s) return;
    looked_ = now_s();
    std::string heard;
    for (std::int64_t rank = 0; rank < generation_.world; ++rank) heard += last_progress(*of_ranks_, rank);
    if (std::exchange(last_, heard) != heard) heard_ = looked_;
    if (looked_ - heard_ < generation_.silence_s) return;
    silent_ = true;
    detect();
  }

  /// A rank that was killed, or refused its configuration, explains more than one that lost its peer; so does one that
  /// ended with a status of its own. Else the first failure is the one that the ranks have agreed on.
  void blame() {
    std::sort(end_.killed.begin(), end_.killed.end());
    if (silent_) return blame_all();
    const auto first = first_failure(*of_ranks_);
    const auto explains = [&](const RankProcesses::Ended& e) {
      return WIFSIGNALED(e.status)                                    ? 3
             : WEXITSTATUS(e.status) == static_cast<int>(Code::usage) ? 2
             : first && WEXITSTATUS(e.status) != first->status        ? 1
                                                                      : 0;
    };
    const auto culprit = *std::max_element(failed_.begin(), failed_.end(),
                                           [&](const auto& a, const auto& b) { return explains(a) < explains(b); });
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
    for (std::int64_t rank = 0; rank < generation_.world; ++rank) end_.ranks.push_back(rank);
    end_.cause = "silence";
    end_.message = fmt::format("no rank has been heard of for {:g} s (dist_timeout)", generation_.silence_s);
  }

  const Generation& generation_;
  GracePeriod& grace_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  c10::intrusive_ptr<c10d::PrefixStore> of_ranks_;
  double started_, looked_, heard_;  ///< heard_: when what the ranks publish has last changed
  std::string last_;
  RankProcesses processes_;
  std::vector<RankProcesses::Ended> failed_;
  bool asked_ = false, silent_ = false;
  GenerationEnd end_;
};

}  // namespace

GenerationEnd run_generation(const Generation& generation, GracePeriod& grace) {
  return Watched(generation, grace).run();
}

}  // namespace wt
