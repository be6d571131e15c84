// Replays one training step on a simulated cluster: the ops of the step program spend their predicted time, collectives
// share the cluster's pools, and ranks wait for each other as they do in the trainer. One step of 3,072 GPUs costs well
// under half a second, because ranks that are twins are simulated once.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/model.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/timeline.hpp"
#include "sim/replay/representatives.hpp"

namespace wt {

struct ReplayOptions {
  std::int64_t step = 0;           ///< which step of the routing source
  bool fold = true;                ///< simulate twins once
  bool timelines = true;           ///< give op records; without them only the sums
  std::vector<NodeHealth> health;  ///< further ones than ClusterSpec::degraded
  /// Draw every op's seconds around its price by OpCost::variation, so that ranks wait for whoever is slow by chance.
  /// By step, rank and op: the same step gives the same draws. Error{usage} with fold.
  bool vary = false;
  bool critical_alone = false;  ///< of the timelines give the critical rank's
};

/// Work of a replay's start, in ops: its process, its pools.
inline constexpr std::int64_t kOpsOfStart = 8'000;

/// Ops of one kind of work on the critical rank.
struct OpClassTotal {
  Action action = Action::load_batch;
  Direction direction = Direction::forward;
  Group group = Group::none;
  Lane lane = Lane::compute;
  std::int64_t count = 0;
  double busy_s = 0;                        ///< from start to end
  double exposed_s = 0;                     ///< that the compute lane stood still for them
  std::optional<AllReduce> algorithm = {};  ///< of all-reduces over GPUs: the last one's
};

struct ReplayResult {
  double step_s = 0;
  double low_s = 0, high_s = 0;    ///< 80 % interval: the critical rank's prices all low, all high
  double exposed_s = 0;            ///< of the critical rank
  double slowed_s = 0;             ///< by which its computation took longer beside communication
  std::int64_t critical_rank = 0;  ///< the last to end
  bool folded = false;
  bool uplink_shares = false;  ///< folded with approximate uplinks: see representatives.hpp
  std::int64_t simulated_ranks = 0;
  std::int64_t work = 0;                ///< ops of the simulated ranks, and kOpsOfStart: the same on every machine
  std::vector<StepTimeline> timelines;  ///< of the simulated ranks, ascending
  std::vector<OpClassTotal> totals;     ///< of the critical rank, in order of first issue
  std::array<double, kLanes>
      lane_busy_s{};  ///< of the critical rank, by Lane; a tensor group's collectives all as `tensor`
  /// Seconds of the critical rank's step by the root of their evidence: what follows from a published figure counts as
  /// published; derived is only what has no root. They sum to step_s.
  std::array<double, 4> evidence_s{};
  std::uint64_t digest = 0;  ///< of all simulated times, bit by bit
  double wall_s = 0;         ///< what the replay took
};

/// Throws Error{usage} where the prices are of a host whose ranks share cores and the cluster is of GPUs, or the other
/// way round.
void check_same_machine(const ClusterSpec& cluster, const OpCost& cost);

/// Throws Error{usage}: prices of another kind of machine than the cluster, the layout does not fit the cluster, ranks
/// disagree on collectives, prices that are missing; Error{runtime}: the simulation failed.
ReplayResult replay(const ProgramSet& programs, const Layout& layout, const ModelSpec& model,
                    const ClusterSpec& cluster, const OpCost& cost, const RoutingSource& routing,
                    const ReplayOptions& options = {});

}  // namespace wt
