// What follows a failure: which recovery of the policy, on which nodes, or the end of the run. Knows failures by rank
// and cause, so that a fault that comes back is told from two that have nothing to do with each other.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "configs/files/scenario.hpp"
#include "trainer/recovery/fleet.hpp"

namespace wt {

struct RankFailure {
  std::vector<std::int64_t> ranks;  ///< at fault, ascending
  std::string cause;                ///< "signal 9 (Killed)"
  Fleet::Losses lost_nodes;         ///< all of whose ranks are gone; none where a process failed and its node lives
  std::int64_t safe_step = 0;       ///< that a start is known to go on from
};

/// What the agent does next.
struct RecoveryDecision {
  bool goes_on = true;
  std::string action;  ///< "restart", "spare", "shrink to 2 ranks", "wait"; or why the run ends
  double wait_s = 0;   ///< before the next generation starts
};

class Recoveries {
 public:
  Recoveries(RecoveryPolicy policy, Fleet& fleet) : policy_(std::move(policy)), fleet_(fleet) {}

  /// A process that failed on a living node is started again in its place, as often as retries_same_place says. After
  /// that, and where nodes are lost, the policy's first possible recovery comes. `now`: on the clock of lost_nodes.
  RecoveryDecision after(const RankFailure& failure, double now);

  /// Before that, while the ranks that are left wait: those that go on without the replicas of `gone`, which have ended
  /// or are at fault; none where the policy has no such recovery, where one that comes before it is possible, or too
  /// few replicas are left. Nodes count as lost as above.
  std::vector<std::int64_t> go_on_without(const RankFailure& failure, const std::vector<std::int64_t>& gone);
  /// Of ranks that were to join and were silent: the nodes that count as lost as above.
  Fleet::Losses lost_by_silence(const RankFailure& failure) { return lost_with(failure, ++times_of(failure)); }

 private:
  /// How often it has failed in this way without a new checkpoint in between; to be counted by the caller.
  std::int64_t& times_of(const RankFailure& failure);
  Fleet::Losses lost_with(const RankFailure& failure, std::int64_t times) const;
  std::optional<RecoveryDecision> possible(Recovery recovery, const Fleet::Losses& lost, bool comes_back, double now);

  RecoveryPolicy policy_;
  Fleet& fleet_;
  std::int64_t safe_step_ = 0;                ///< the furthest so far
  std::map<std::string, std::int64_t> seen_;  ///< failures of a kind since that was reached
};

}  // namespace wt
