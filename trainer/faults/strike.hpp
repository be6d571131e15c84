// How each kind of fault is done to real processes, without root. For fault_point.cpp alone.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "trainer/faults/fault_point.hpp"
#include "trainer/faults/processes.hpp"
#include "trainer/faults/strike_log.hpp"

namespace wt {

/// All that a strike needs.
struct StrikeContext {
  const FaultEvent& event;
  const FaultedRank& self;
  const StrikeLog& log;
  Strike strike;                       ///< of this rank
  std::vector<RankProcess> victims;    ///< this process among them where it is one; on this machine
  std::vector<Strike> victim_strikes;  ///< in their order
};

/// SIGKILL to all victims, this process last; their nodes' local copies go, where the event takes them. Does not return
/// where this process is a victim.
void kill_victims(const StrikeContext& context);
/// Ends this process with a signal whose default action ends it.
[[noreturn]] void end_with_signal(int signal);
/// SIGSTOP to all of them, SIGCONT after `lasts_s`. A forked process samples their states as proof.
void stop_processes(const std::vector<pid_t>& pids, const StrikeContext& context);
/// SIGKILL after the notice to what has not ended by then.
void announce_end(pid_t pid, const StrikeContext& context);
/// Cuts the connections between this rank and those that are not victims.
nlohmann::json cut_connections(const StrikeContext& context);
/// From now on writing fails, as on a full disk (ENOSPC) or beyond the limit of a file's size (EFBIG).
void limit_files(const StrikeContext& context);
/// Flips one bit, or zeroes all.
nlohmann::json corrupt(HostNumbers numbers, const FaultEffect& what);

}  // namespace wt
