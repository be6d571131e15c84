// Replays one training step on a simulated cluster. Ops take their predicted time, collectives share the cluster's
// pools, and ranks wait for each other as in the trainer. One step of 3,072 GPUs costs well under half a second,
// because twins are simulated once.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/model.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/cost/ops/step_ratios.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/timeline.hpp"
#include "sim/replay/representatives.hpp"

namespace wt {

struct ReplayOptions {
  std::int64_t step = 0;           ///< which step of the routing source
  bool fold = true;                ///< simulate twins only once
  bool timelines = true;           ///< return op records; else only sums
  std::vector<NodeHealth> health;  ///< in addition to ClusterSpec::degraded
  /// Draw every op's seconds around its time by MachineTraits::variation, so that ranks wait for ranks that are slow
  /// by chance. Draws depend on step, rank and op alone. Error{usage} with fold.
  bool vary = false;
  bool critical_alone = false;   ///< return only the critical rank's timeline
  StepRatiosByKind off_by = {};  ///< how far off steps are, on top of the times' own intervals
};

/// The start of a replay (process, pools) as a number of ops.
inline constexpr std::int64_t kOpsOfStart = 8'000;

/// Ops of one kind of work on the critical rank.
struct OpClassTotal {
  Action action = Action::load_batch;
  Direction direction = Direction::forward;
  Group group = Group::none;
  Lane lane = Lane::compute;
  std::int64_t count = 0;
  double busy_s = 0;                        ///< sum of their durations
  double exposed_s = 0;                     ///< time in which the compute lane stood still for them
  std::optional<AllReduce> algorithm = {};  ///< of all-reduces over GPUs: that of the last one
};

struct ReplayResult {
  double step_s = 0;
  double low_s = 0, high_s = 0;    ///< 80 % interval: all times of the critical rank low, or all high
  double exposed_s = 0;            ///< of the critical rank
  double slowed_s = 0;             ///< additional time of its computation due to communication
  std::int64_t critical_rank = 0;  ///< the last rank to end
  bool folded = false;
  bool uplink_shares = false;  ///< folded, with approximate uplinks: see representatives.hpp
  std::int64_t simulated_ranks = 0;
  std::int64_t work = 0;                ///< ops of the simulated ranks, plus kOpsOfStart: the same on every machine
  std::vector<StepTimeline> timelines;  ///< of the simulated ranks, ascending
  std::vector<OpClassTotal> totals;     ///< of the critical rank, in order of first issue
  /// Seconds of the critical rank's lanes, by Lane; a tensor group's collectives count as `tensor`.
  std::array<double, kLanes> lane_busy_s{};
  /// Seconds of the critical rank's step by the root of their evidence. A number that follows from a published figure
  /// counts as published; `derived` counts only numbers without a root. They sum to step_s.
  std::array<double, 4> evidence_s{};
  std::uint64_t digest = 0;  ///< of all simulated times, bit by bit
  double wall_s = 0;         ///< wall time of the replay
};

/// Throws Error{usage} if the times are for shared cores and the cluster has GPUs, or vice versa.
void check_same_machine(const ClusterSpec& cluster, const OpCost& cost);

/// Throws Error{usage} if times are for the other kind of machine or missing, if the layout does not fit the cluster,
/// or if ranks disagree on collectives; Error{runtime} if the simulation fails.
ReplayResult replay(const ProgramSet& programs, const Layout& layout, const ModelSpec& model,
                    const ClusterSpec& cluster, const OpCost& cost, const RoutingSource& routing,
                    const ReplayOptions& options = {});

}  // namespace wt
