// Decides what follows a failure: a recovery of the policy, on which nodes, or the end of the run. Failures are
// identified by rank and cause, so that a recurring fault is distinguished from independent ones.
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
  Fleet::Losses lost_nodes;         ///< nodes that lost all of their ranks; empty if a process failed on a living node
  std::int64_t safe_step = 0;       ///< a step that a start can resume from for certain
};

/// The agent's next action.
struct RecoveryDecision {
  bool goes_on = true;
  std::string action;  ///< "restart", "spare", "shrink to 2 ranks", "wait"; or why the run ends
  double wait_s = 0;   ///< before the next generation starts
};

class Recoveries {
 public:
  Recoveries(RecoveryPolicy policy, Fleet& fleet) : policy_(std::move(policy)), fleet_(fleet) {}

  /// A process that failed on a living node is restarted in its place, up to retries_same_place times. After that, and
  /// if nodes are lost, the policy's first possible recovery is used. `now` is on the clock of lost_nodes.
  RecoveryDecision after(const RankFailure& failure, double now);

  /// To be called first, while the surviving ranks wait. Returns the ranks that go on without the replicas of `gone`
  /// (ranks that have ended or are at fault). Empty if the policy has no such recovery, if an earlier one of the policy
  /// is possible, or if too few replicas are left. Nodes count as lost as in after().
  std::vector<std::int64_t> go_on_without(const RankFailure& failure, const std::vector<std::int64_t>& gone);
  /// For ranks that should join but were silent: the nodes that count as lost, as in after().
  Fleet::Losses lost_by_silence(const RankFailure& failure) { return lost_with(failure, ++times_of(failure)); }

 private:
  /// Number of failures of this kind without a new checkpoint in between. The caller counts.
  std::int64_t& times_of(const RankFailure& failure);
  Fleet::Losses lost_with(const RankFailure& failure, std::int64_t times) const;
  std::optional<RecoveryDecision> possible(Recovery recovery, const Fleet::Losses& lost, bool comes_back, double now);

  RecoveryPolicy policy_;
  Fleet& fleet_;
  std::int64_t safe_step_ = 0;                ///< the largest so far
  std::map<std::string, std::int64_t> seen_;  ///< failures by kind since safe_step_
};

}  // namespace wt
