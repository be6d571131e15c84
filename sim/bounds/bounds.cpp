#include "sim/bounds/bounds.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <limits>

#include "configs/base/number.hpp"
#include "sim/bounds/op_seconds.hpp"
#include "sim/program/lane_clock.hpp"
#include "sim/program/walk.hpp"
#include "sim/replay/bind.hpp"
#include "sim/replay/replay_executor.hpp"

namespace wt {
namespace {

// A lower bound on the step of a GPU whose computation is slowed while collectives of its rank are in flight. Neither
// the fullest lane nor the critical path implies it. With C seconds of computation at full rate, S of standstill and F
// of collectives in flight, at most S of which coincide with the standstill: step >= C + S + slowdown (F - S).

using LaneSeconds = std::array<double, kLanes>;

/// Collects C, S and F from the ops of a rank. Ops come in issue order, with their least seconds.
///   C  ops of the compute lane;
///   S  collectives on the compute lane, and gaps between two of its ops where the second transitively waits for the
///     first;
///   F  collectives of the fullest lane, or the fullest link's bytes at its full rate.
/// Costs nothing if nothing is slowed.
class Occupation {
 public:
  /// The program must outlive the object.
  Occupation(const RankProgram& program, double slowdown);
  void add(int op, double seconds);
  /// Call after the last op. Returns 0 if nothing is slowed.
  double bound_s(const StepTasks& step, const RankTasks& rank) const;

 private:
  /// The last compute-lane op that an op depends on, and the least time between the ends of both.
  struct Reach {
    int op = -1;
    double seconds = 0;
    auto operator<=>(const Reach&) const = default;
  };

  const RankProgram& program_;
  double slowdown_, still_s_ = 0;
  int last_ = -1;  ///< the compute lane's last op
  LaneSeconds lane_s_{};
  std::vector<Reach> reach_;
};

constexpr auto kCompute = static_cast<std::size_t>(Lane::compute);

/// Least time of the rank's busiest link, at its full rate.
double fullest_link_s(const StepTasks& step, const RankTasks& rank) {
  std::vector<double> carried_s(step.capacity.size(), 0.0);
  for (int c : rank.collective) {
    if (c < 0 || step.collectives[static_cast<std::size_t>(c)].load < 0) continue;
    const CollectiveTask& task = step.collectives[static_cast<std::size_t>(c)];
    const PoolLoad& load = step.loads[static_cast<std::size_t>(task.load)];
    for (std::size_t p = 0; p < load.pools.size(); ++p) {
      const std::size_t pool = static_cast<std::size_t>(load.pools[p]);
      carried_s[pool] += task.scale * load.amounts[p] / step.capacity[pool];
    }
  }
  return carried_s.empty() ? 0 : *std::ranges::max_element(carried_s);
}

/// Seconds of the fullest lane on which a rank's collectives are serial.
double fullest_transfers(const LaneSeconds& lane_s) {
  double fullest = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (lane != kCompute && lane != static_cast<std::size_t>(Lane::copy)) fullest = std::max(fullest, lane_s[lane]);
  return fullest;
}

/// The bound above. It is increasing in each argument.
double slowed_step_s(double compute_s, double still_s, double in_flight_s, double slowdown) {
  return compute_s + still_s + slowdown * std::max(0.0, in_flight_s - still_s);
}

Occupation::Occupation(const RankProgram& program, double slowdown) : program_(program), slowdown_(slowdown) {
  if (slowdown > 0) reach_.resize(program.ops.size());
}

void Occupation::add(int op, double seconds) {
  if (slowdown_ <= 0) return;
  const std::size_t at = static_cast<std::size_t>(op);
  const OpInstance& instance = program_.ops[at];
  Reach reach;
  for (int wait : instance.waits) reach = std::max(reach, reach_[static_cast<std::size_t>(wait)]);
  if (instance.op->lane == Lane::compute) {
    if (reach.op == last_) still_s_ += reach.seconds;
    (program_.collective(op) ? still_s_ : lane_s_[kCompute]) += seconds;
    last_ = op;
    reach_[at] = {op, 0};
    return;
  }
  if (const int previous = program_.lane_previous[at]; previous >= 0)
    reach = std::max(reach, reach_[static_cast<std::size_t>(previous)]);
  reach.seconds += seconds;
  reach_[at] = reach;
  lane_s_[static_cast<std::size_t>(instance.op->lane)] += seconds;
}

double Occupation::bound_s(const StepTasks& step, const RankTasks& rank) const {
  if (slowdown_ <= 0) return 0;
  double after_s = 0;  // least time that ops need after the compute lane's last op
  for (const Reach& each : reach_)
    if (each.op == last_) after_s = std::max(after_s, each.seconds);
  return slowed_step_s(lane_s_[kCompute], still_s_ + after_s,
                       std::max(fullest_link_s(step, rank), fullest_transfers(lane_s_)), slowdown_);
}

constexpr RoutingFloor kHighestFloor{std::numeric_limits<double>::max(), 1, std::numeric_limits<double>::max()};

RoutingFloor lower(const RoutingFloor& a, const RoutingFloor& b) {
  return {std::min(a.rows, b.rows), std::min(a.sent_share, b.sent_share), std::min(a.returned_rows, b.returned_rows)};
}

class LaneSums {
 public:
  /// `cluster` has nodes of one kind, the rank's. `mixed` is the cluster with all kinds, or nullptr.
  LaneSums(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
           const std::vector<RoutingFloor>& floors, std::int64_t rank, const ClusterSpec* mixed)
      : cluster_(cluster), cost_(cost), floors_(floors), seconds_(layout, cluster, cost, rank, mixed) {}

  double run(const Program& program) {
    layers_ = program.layers;
    for_each_op(
        program.nodes,
        [this](const Op& op, const LoopsAround& around) {
          add(op, around.layers ? around.times * within(op, *around.layers) : around.times);
        },
        [this](const Loop& loop) {
          if (loop.index == Loop::Index::microbatch) floor_ = of_microbatches(loop);
          return true;
        });
    const double compute_s = lane_s_[static_cast<std::size_t>(Lane::compute)] - blocking_s_;
    double bound = std::max(
        *std::ranges::max_element(lane_s_),
        slowed_step_s(compute_s, blocking_s_, fullest_transfers(lane_s_), cost_.traits().communication_slowdown.share));
    if (cluster_.shared_cores()) bound = std::max(bound, cpu_s_ / cluster_.cores);
    return bound;
  }

 private:
  RoutingFloor of_microbatches(const Loop& loop) const {
    return lowest(
        std::span(floors_).subspan(static_cast<std::size_t>(loop.first), static_cast<std::size_t>(loop.count())));
  }

  /// Share of a loop's rounds in which the op's layer exists. The last round prefetches nothing.
  double within(const Op& op, const Loop& loop) const {
    const auto is_there = [&](int layer) { return layer_of(op, layer, layers_).has_value(); };
    if (is_there(loop.first) && is_there(loop.last)) return 1;  // then all rounds between them have the layer, too
    return static_cast<double>(std::ranges::count_if(rounds_of(loop), is_there)) / loop.count();
  }

  void add(const Op& op, double times) {
    const OpSeconds::Of at_least = seconds_.of(op, floor_);
    if (op.collective_kind() && op.lane == Lane::compute) blocking_s_ += times * at_least.seconds;
    lane_s_[static_cast<std::size_t>(op.lane)] += times * at_least.seconds;
    cpu_s_ += times * at_least.cpu_s;
  }

  const ClusterSpec& cluster_;
  const OpCost& cost_;
  const std::vector<RoutingFloor>& floors_;
  RoutingFloor floor_;  ///< of the current microbatches
  OpSeconds seconds_;
  int layers_ = 0;
  LaneSeconds lane_s_{};
  double blocking_s_ = 0;  ///< collectives of a tensor group on the compute lane
  double cpu_s_ = 0;       ///< of all ranks of the stage, on shared cores
};

}  // namespace

RoutingFloor lowest(std::span<const RoutingFloor> floors) {
  RoutingFloor out = kHighestFloor;
  for (const RoutingFloor& floor : floors) out = lower(out, floor);
  return out;
}

RoutingFloor floor_of(const RoutingTable& table, const Layout& layout, int microbatch, int layer, std::int64_t rank) {
  const auto& sends = table.sends(microbatch, layer, rank);
  const std::size_t n = static_cast<std::size_t>(layout.expert),
                    own = static_cast<std::size_t>(layout.row_rank(rank) % layout.expert);
  double sent = 0;
  for (std::size_t e = 0; e < n; ++e) sent += sends[own * n + e];
  const double received = table.rows(microbatch, layer, rank), kept = sends[own * n + own];
  return {received, sent > 0 ? 1 - kept / sent : 0, received - kept};
}

std::vector<RoutingFloor> routing_floors(const Program& program, const Layout& layout, const ClusterSpec& cluster,
                                         const RoutingSource& routing, std::int64_t step, std::int64_t rank) {
  std::vector<RoutingFloor> floors(static_cast<std::size_t>(program.microbatches));
  if (layout.expert == 1) return floors;
  std::vector<std::int64_t> ranks{rank}, groups{layout.row_rank(rank) / layout.expert};
  if (cluster.shared_cores()) {
    ranks = every_rank(layout).ranks;
    groups.clear();
    for (std::int64_t g = 0; g < layout.replicate * layout.expert_shard(); ++g) groups.push_back(g);
  }
  const RoutingTable table(routing, layout, program.layers, program.microbatches, step, groups);
  for (int microbatch = 0; microbatch < program.microbatches; ++microbatch) {
    RoutingFloor& floor = floors[static_cast<std::size_t>(microbatch)] = kHighestFloor;
    for (int layer = 0; layer < program.layers; ++layer)
      for (std::int64_t r : ranks) floor = lower(floor, floor_of(table, layout, microbatch, layer, r));
  }
  return floors;
}

double bound0(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
              const std::vector<RoutingFloor>& floors, std::int64_t rank) {
  if (cluster.others.empty()) return LaneSums(layout, cluster, cost, floors, rank, nullptr).run(program);
  const std::size_t kind = cluster.kind_of(cluster.node_of(rank));
  const ClusterSpec own = cluster.all_of(kind);
  return LaneSums(layout, own, cost.on(kind), floors, rank, &cluster).run(program);
}

double bound1(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
              const RoutingSource& routing, std::int64_t step, std::int64_t rank) {
  const ClusterSpec flat = without_uplinks(cluster);
  const Representatives group = neighbours(layout, flat, rank);
  const auto bound = bind_step({programs, layout, flat, cost, routing, step}, group);
  const Traffic traffic(flat, layout, group, {});
  const std::size_t r = static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  const RankTasks& tasks = bound->tasks.ranks[r];
  const RankProgram& program = *tasks.program;
  std::vector<double> done(program.ops.size(), 0.0);
  double cpu_s = 0;
  LaneClock clock(bound->tasks.synchronous_host);
  Occupation occupation(program, bound->tasks.slowdown);
  for (std::size_t i = 0; i < done.size(); ++i) {
    const int index = static_cast<int>(i);
    double ready = 0;
    for (int wait : program.ops[i].waits) ready = std::max(ready, done[static_cast<std::size_t>(wait)]);
    const int previous = program.communicator_previous[i];
    const Lane lane = program.ops[i].op->lane;
    const double start = clock.start_s(lane, ready, previous >= 0 ? done[static_cast<std::size_t>(previous)] : 0);
    double seconds = tasks.seconds[i];
    if (program.collective(index)) {
      const CollectiveTask& task = bound->tasks.collectives[static_cast<std::size_t>(tasks.collective[i])];
      seconds = task.latency_s;
      if (task.load >= 0)
        seconds += task.scale * traffic.alone_s(bound->tasks.loads[static_cast<std::size_t>(task.load)]);
      double sum = 0, most = 0;
      for (double cpu : task.cpu_s) {
        sum += cpu;
        most = std::max(most, cpu);
      }
      if (sum > 0) seconds += std::max(most, sum / flat.cores);
    }
    occupation.add(index, seconds);
    done[i] = start + seconds;
    clock.end(lane, done[i], program.on_host(index));
  }
  if (!flat.shared_cores()) return std::max(clock.end_s(), occupation.bound_s(bound->tasks, tasks));
  for (const RankTasks& each : bound->tasks.ranks)
    for (double seconds : each.seconds) cpu_s += seconds;
  for (const CollectiveTask& task : bound->tasks.collectives)
    for (double cpu : task.cpu_s) cpu_s += cpu;
  return std::max(clock.end_s(), cpu_s / flat.cores);
}

}  // namespace wt
