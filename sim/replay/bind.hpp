// Binds a step to its sizes and prices: programs + layout + cluster + routing + prices -> tasks to execute.
#pragma once
#include <memory>
#include <vector>

#include "configs/files/model.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/replay/price_cache.hpp"
#include "sim/replay/replay_executor.hpp"
#include "sim/replay/representatives.hpp"
#include "sim/replay/routing_table.hpp"
#include "sim/replay/traffic.hpp"

namespace wt {

/// What an op's seconds rest on.
struct OpEvidence {
  double low = 1, high = 1;                         ///< the 80 % interval, relative to the price
  EvidenceShares shares = only(Evidence::derived);  ///< by root
  std::optional<AllReduce> algorithm = {};          ///< of an all-reduce over GPUs
};

struct BoundStep {
  StepTasks tasks;
  std::vector<RankProgram> programs;  ///< by class; tasks point into it
  std::unique_ptr<RoutingTable> routing;
  std::vector<std::int64_t> ranks;  ///< world rank of each simulated rank
  CommunicationSlowdown slowdown;   ///< what the tasks' slowdown rests on
  /// Ranks repeat a few prices millions of times, so each op has the number of its evidence.
  std::vector<OpEvidence> different_evidence;      ///< of ops that are no collectives; the first one of no price
  std::vector<std::vector<int>> evidence_of_op;    ///< by rank and op: index into different_evidence
  std::vector<OpEvidence> evidence_of_collective;  ///< by collective

  const OpEvidence& evidence(std::size_t rank, std::size_t op) const;
  /// That are bound where the op depends on them, else 0.
  double rows(std::size_t rank, std::size_t op) const;
};

/// A step whose sizes and prices are not known yet, and who knows them.
struct UnboundStep {
  const ProgramSet& programs;
  const Layout& layout;
  const ClusterSpec& cluster;
  const OpCost& cost;
  const RoutingSource& routing;
  std::int64_t number = 0;  ///< for which the routing is asked
};

/// Matches collectives by (axis, group instance, order of issue). Throws Error{usage} where members disagree, and what
/// OpCost throws. The programs must outlive the result.
std::unique_ptr<BoundStep> bind_step(const UnboundStep& step, const Representatives& ranks,
                                     const std::vector<NodeHealth>& health = {});

/// Bytes from member to member of an expert group in an all-to-all op of a rank that sends `bytes[member]` in all:
/// towards the experts by the routed rows, back from them transposed, counts evenly.
std::vector<double> exchange_bytes(const std::vector<const Op*>& ops, const std::vector<double>& sends,
                                   const std::vector<double>& bytes);

}  // namespace wt
