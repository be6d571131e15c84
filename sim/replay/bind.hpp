// Binds a step to sizes and times: programs + layout + cluster + routing + times -> tasks to execute.
#pragma once
#include <memory>
#include <vector>

#include "configs/files/model.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/cost/ops/step_ratios.hpp"
#include "sim/replay/bound_segments.hpp"
#include "sim/replay/replay_executor.hpp"
#include "sim/replay/representatives.hpp"
#include "sim/replay/routing_table.hpp"
#include "sim/replay/traffic.hpp"

namespace wt {

/// The evidence for an op's seconds.
struct OpEvidence {
  double low = 1, high = 1;                         ///< the 80 % interval, relative to the time
  EvidenceShares shares = only(Evidence::derived);  ///< by root
  std::optional<AllReduce> algorithm = {};          ///< of an all-reduce over GPUs
};

struct BoundStep {
  StepTasks tasks;
  std::vector<RankProgram> programs;  ///< by class; tasks point into it
  std::unique_ptr<RoutingTable> routing;
  std::vector<std::int64_t> ranks;  ///< world rank of each simulated rank
  CommunicationSlowdown slowdown;   ///< with the evidence for tasks.slowdown
  /// Ranks repeat a few times millions of times, so an op has only an index of its evidence.
  /// Of ops that are not collectives; the first is for ops without a time.
  std::vector<OpEvidence> different_evidence;
  std::vector<std::vector<int>> evidence_of_op;    ///< by rank and op: index into different_evidence
  std::vector<OpEvidence> evidence_of_collective;  ///< by collective

  const OpEvidence& evidence(std::size_t rank, std::size_t op) const;
  /// The rows that the op was bound with; 0 if it does not depend on rows.
  double rows(std::size_t rank, std::size_t op) const;
};

/// A step before binding, with the sources of its sizes and times.
struct UnboundStep {
  const ProgramSet& programs;
  const Layout& layout;
  const ClusterSpec& cluster;
  const OpCost& cost;
  const RoutingSource& routing;
  std::int64_t number = 0;  ///< the step number, for the routing
  StepRatiosByKind off_by = {};
};

/// Matches collectives by (axis, group instance, order of issue). Throws Error{usage} if members disagree, and as
/// OpCost does. The programs must outlive the result.
std::unique_ptr<BoundStep> bind_step(const UnboundStep& step, const Representatives& ranks,
                                     const std::vector<NodeHealth>& health = {});

/// Bytes from member to member of an expert group in an all-to-all. Each rank sends bytes[member] in total. Towards the
/// experts they are split by the routed rows, and back by the transpose; exchanges of counts are split evenly.
std::vector<double> exchange_bytes(const std::vector<const Op*>& ops, const std::vector<double>& sends,
                                   const std::vector<double>& bytes);

}  // namespace wt
