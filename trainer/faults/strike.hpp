// Injection of each kind of fault into real processes, without root. Only for fault_point.cpp.
#pragma once
#include <vector>

#include "trainer/faults/fault_point.hpp"
#include "trainer/faults/processes.hpp"
#include "trainer/faults/strike_log.hpp"

namespace wt {

/// Inputs of an injection.
struct StrikeContext {
  const FaultEvent& event;
  const FaultedRank& self;
  const StrikeLog& log;
  Strike strike;                       ///< record of this rank
  std::vector<RankProcess> victims;    ///< affected processes on this machine, possibly including this one
  std::vector<Strike> victim_strikes;  ///< their records, in the same order
};

/// Sends SIGKILL to all victims, this process last, and removes their nodes' local checkpoints if the event says so.
/// Does not return if this process is a victim.
void kill_victims(const StrikeContext& context);
/// Ends this process by a signal whose default action ends it.
[[noreturn]] void end_with_signal(int signal);
/// Sends SIGSTOP to all of them, and SIGCONT after `lasts_s`. A forked process samples their states as proof.
void stop_processes(const std::vector<pid_t>& pids, const StrikeContext& context);
/// Sends the notice, and after its time SIGKILL to processes that have not ended.
void announce_end(pid_t pid, const StrikeContext& context);
/// Cuts the connections between this rank and ranks that are not victims.
nlohmann::json cut_connections(const StrikeContext& context);
/// From now on writes fail, as on a full disk (ENOSPC) or above a file-size limit (EFBIG).
void limit_files(const StrikeContext& context);
/// Flips one bit, or zeroes the tensor.
nlohmann::json corrupt(HostNumbers numbers, const FaultEffect& what);

}  // namespace wt
