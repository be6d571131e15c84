#include "trainer/recovery/recovery.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "configs/base/lists.hpp"

namespace wt {
namespace {

/// Identifies places by node, because ranks that come back have other numbers.
std::string kind_of(const RankFailure& failure, const Fleet& fleet) {
  std::string kind = failure.cause;
  for (const std::int64_t rank : failure.ranks)
    kind += fmt::format(", rank {} of node {}", rank % fleet.ranks_per_node(), fleet.node_of(rank));
  return kind;
}

/// When all nodes are back; empty = one never is.
std::optional<double> back_at(const Fleet::Losses& lost) {
  double at = 0;
  for (const auto& [node, back] : lost) {
    if (!back) return std::nullopt;
    at = std::max(at, *back);
  }
  return at;
}

}  // namespace

std::optional<RecoveryDecision> Recoveries::possible(Recovery recovery, const Fleet::Losses& lost, bool comes_back,
                                                     double now) {
  switch (recovery) {
    case Recovery::spare:
      if (!fleet_.replace(lost)) return std::nullopt;
      return RecoveryDecision{true, "spare"};
    case Recovery::shrink:
      if (!fleet_.shrink(lost)) return std::nullopt;
      return RecoveryDecision{true, fmt::format("shrink to {} ranks", fleet_.world())};
    case Recovery::restart:
      if (comes_back) return std::nullopt;
      return RecoveryDecision{true, "restart"};
    case Recovery::wait:
      if (const auto back = back_at(lost)) return RecoveryDecision{true, "wait", std::max(0.0, *back - now)};
      return std::nullopt;
    case Recovery::without_replica:  // see go_on_without(); here all ranks have ended
      break;
  }
  return std::nullopt;
}

std::int64_t& Recoveries::times_of(const RankFailure& failure) {
  if (failure.safe_step > safe_step_) seen_.clear();
  safe_step_ = std::max(safe_step_, failure.safe_step);
  return seen_[kind_of(failure, fleet_)];
}

Fleet::Losses Recoveries::lost_with(const RankFailure& failure, std::int64_t times) const {
  Fleet::Losses lost = failure.lost_nodes;
  if (lost.empty() && times > policy_.retries_same_place)
    for (const std::int64_t rank : failure.ranks) lost[fleet_.node_of(rank)] = std::nullopt;
  return lost;
}

std::vector<std::int64_t> Recoveries::go_on_without(const RankFailure& failure, const std::vector<std::int64_t>& gone) {
  std::int64_t& times = times_of(failure);
  const Fleet::Losses lost = lost_with(failure, times + 1);
  for (const Recovery recovery : policy_.on_loss) {
    if (recovery == Recovery::without_replica) {
      const std::vector<std::int64_t> left = fleet_.drop_replicas(gone, lost);
      if (!left.empty()) ++times;  // else after() counts it
      return left;
    }
    const bool possible = recovery == Recovery::spare ? fleet_.can_replace(lost) : true;
    if (!lost.empty() && possible) return {};
  }
  return {};
}

RecoveryDecision Recoveries::after(const RankFailure& failure, double now) {
  const std::int64_t times = ++times_of(failure);
  const bool comes_back = times > policy_.retries_same_place;
  const Fleet::Losses lost = lost_with(failure, times);
  if (lost.empty()) return {true, "restart"};
  for (const Recovery recovery : policy_.on_loss)
    if (const auto decision = possible(recovery, lost, comes_back, now)) return *decision;
  const std::string tried = joined(policy_.on_loss, ", ", [](Recovery recovery) { return to_string(recovery); });
  const std::string often = times == 1 ? "" : fmt::format("{} times without a new checkpoint in between; ", times);
  return {false, fmt::format("{}none of the policy's recoveries is possible: {}", often, tried)};
}

}  // namespace wt
