#include "sim/estimate/bounds.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "configs/spec/support/number.hpp"
#include "sim/estimate/occupation.hpp"
#include "sim/replay/bind.hpp"

namespace wt {
namespace {

/// The rank's expert group stands for the cluster. Uplinks are left out: alone, a ring has a whole leaf's.
Representatives neighbours(const Layout& layout, const ClusterSpec& cluster, std::int64_t rank) {
  if (cluster.shared_cores()) return every_rank(layout);
  Representatives group;
  group.folded = true;
  group.ranks = Mesh(layout).members(Axis::expert, Mesh(layout).group_index(Axis::expert, rank));
  return group;
}

ClusterSpec without_uplinks(ClusterSpec cluster) {
  cluster.oversubscription = 1;
  cluster.degraded_leaves.clear();
  return cluster;
}

/// n executions of cpu_s on the cores, one core each at most.
double on_cores(double cpu_s, double n, double cores) { return std::max(cpu_s, n * cpu_s / cores); }

constexpr RoutingFloor kHighestFloor{std::numeric_limits<double>::max(), 1, std::numeric_limits<double>::max()};

RoutingFloor lower(const RoutingFloor& a, const RoutingFloor& b) {
  return {std::min(a.rows, b.rows), std::min(a.sent_share, b.sent_share), std::min(a.returned_rows, b.returned_rows)};
}

/// Of microbatches first to last.
RoutingFloor lowest(const std::vector<RoutingFloor>& floors, int first, int last) {
  RoutingFloor out = kHighestFloor;
  for (int microbatch = first; microbatch <= last; ++microbatch)
    out = lower(out, floors.at(static_cast<std::size_t>(microbatch)));
  return out;
}

class LaneSums {
 public:
  /// `cluster` has nodes of one kind, the rank's; `mixed`, where there is one, is the cluster with all kinds.
  LaneSums(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
           const std::vector<RoutingFloor>& floors, std::int64_t rank, const ClusterSpec* mixed)
      : cluster_(cluster),
        mixed_(mixed),
        cost_(cost),
        floors_(floors),
        layout_(layout),
        crowding_(cluster.shared_cores() ? cost.crowding(layout.world()) : 1),
        mesh_(layout),
        rank_(rank) {}

  double run(const Program& program) {
    layers_ = program.layers;
    visit(program.nodes, 1, nullptr);
    const double compute_s = lane_s_[static_cast<std::size_t>(Lane::compute)] - blocking_s_;
    double bound = std::max(
        *std::max_element(lane_s_.begin(), lane_s_.end()),
        slowed_step_s(compute_s, blocking_s_, fullest_transfers(lane_s_), cost_.communication_slowdown().share));
    if (cluster_.shared_cores()) bound = std::max(bound, cpu_s_ / cluster_.cores);
    return bound;
  }

 private:
  void visit(const std::vector<Node>& nodes, double times, const Loop* over_layers) {
    for (const Node& node : nodes) {
      if (const Op* op = std::get_if<Op>(&node)) {
        add(*op, over_layers ? times * within(*op, *over_layers) : times);
        continue;
      }
      const Loop& loop = std::get<Loop>(node);
      if (loop.index == Loop::Index::microbatch) floor_ = lowest(floors_, loop.first, loop.last);
      visit(loop.body, times * loop.count(), loop.index == Loop::Index::layer ? &loop : over_layers);
    }
  }

  /// Share of a loop's rounds in which the op's layer exists: a prefetch of the next one is void in the last.
  double within(const Op& op, const Loop& loop) const {
    if (op.layer_delta == 0 || op.group == Group::embedding || op.group == Group::head) return 1;
    int rounds = 0;
    for (int i = 0; i < loop.count(); ++i) {
      const int layer = (loop.descending ? loop.first - i : loop.first + i) + op.layer_delta;
      rounds += layer >= 0 && layer < layers_;
    }
    return static_cast<double>(rounds) / loop.count();
  }

  void add(const Op& op, double times) {
    if (op.kind == OpKind::host) return;
    double seconds = 0;
    if (op.kind == OpKind::segment || op.kind == OpKind::copy) {
      seconds = cost_.segment(op, floor_.rows).seconds * crowding_;
      cpu_s_ += times * seconds * equal_ranks(op, layout_.stage_ranks());
    } else {
      seconds = collective(op, times);
      if (op.lane == Lane::compute) blocking_s_ += times * seconds;
    }
    lane_s_[static_cast<std::size_t>(op.lane)] += times * seconds;
  }

  /// How many of the ranks surely do as much: copies of experts make expert ranks differ.
  static double equal_ranks(const Op& op, std::int64_t ranks) {
    return op.action == Action::exchange_copies || op.action == Action::add_copies ? 1 : as_double(ranks);
  }

  double collective(const Op& op, double times) {
    if (op.kind == OpKind::send || op.kind == OpKind::receive) return between_stages(op);
    std::optional<GroupShape>& group = groups_[static_cast<std::size_t>(op.collective.axis)];
    if (!group) group = shape(op.collective.axis);
    if (group->size == 1) return 0;
    const double bytes = op.collective.bytes.at(floor_.rows);
    const CollectivePrice price = cost_.collective(op.kind, bytes, group->size, group->nodes);
    if (cluster_.shared_cores()) {
      cpu_s_ += times * price.cpu_s * equal_ranks(op, layout_.stage_ranks());
      return price.latency_s + on_cores(price.cpu_s, equal_ranks(op, group->size), cluster_.cores);
    }
    if (op.kind != OpKind::all_to_all)
      return price.latency_s + ring_bytes(op.kind, bytes, group->size) / price.efficiency *
                                   (op.kind == OpKind::all_reduce ? reduce_s_per_byte(*group, price.algorithm)
                                                                  : group->gather_s_per_byte);
    const bool routed = op.exchanges_rows();
    const double leaving = !routed ? bytes * as_double(group->size - 1) / as_double(group->size)
                           : op.collective.bytes.per_row != 0 ? op.collective.bytes.per_row * floor_.returned_rows
                                                              : op.collective.bytes.fixed * floor_.sent_share;
    // Whichever port they leave by, at its full rate; of a token one row at least.
    const double efficiency =
        routed ? cost_.row_exchange({}, layout_.dispatcher, op.collective.row_bytes, group->nodes).efficiency : 1;
    const double factor = 1 / efficiency / as_double(std::max<std::int64_t>(1, op.collective.rows_of_token));
    return price.latency_s + factor * leaving / (cluster_.nvswitch_Bps + cluster_.nic_per_gpu_Bps());
  }

  /// Where nodes are of several kinds, another's algorithm may be taken.
  double reduce_s_per_byte(const GroupShape& group, AllReduce algorithm) const {
    return mixed_ ? *std::ranges::min_element(group.reduce_s_per_byte)
                  : group.reduce_s_per_byte[static_cast<std::size_t>(algorithm)];
  }

  /// Inside a node or across nodes, whichever is faster.
  double between_stages(const Op& op) const {
    const double bytes = op.collective.bytes.fixed;
    double least = std::numeric_limits<double>::infinity();
    for (const std::int64_t nodes : {1, 2}) {
      const CollectivePrice price = cost_.collective(OpKind::send, bytes, 2, nodes);
      const double Bps = nodes == 1 ? cluster_.nvswitch_Bps : cluster_.nic_per_gpu_Bps();
      least =
          std::min(least, price.latency_s + (cluster_.shared_cores() ? price.cpu_s : bytes / (Bps * price.efficiency)));
    }
    return least;
  }

  GroupShape shape(Axis axis) const {
    if (const auto nested = group_shape(cluster_, layout_, axis)) return *nested;
    const ClusterSpec& cluster = mixed_ ? *mixed_ : cluster_;
    const std::size_t kind = cluster.kind_of(cluster.node_of(rank_));
    const Traffic traffic(without_uplinks(cluster), layout_, neighbours(layout_, cluster, rank_), {});
    const GroupInstance group = traffic.group(axis, mesh_.group_index(axis, rank_));
    GroupShape shape{group.size, group.nodes, traffic.alone_s(group.ring, kind)};
    for (const AllReduce each : kAllReduces)
      shape.reduce_s_per_byte[static_cast<std::size_t>(each)] = traffic.alone_s(traffic.all_reduce(group, each), kind);
    return shape;
  }

  const ClusterSpec& cluster_;
  const ClusterSpec* mixed_;
  const OpCost& cost_;
  const std::vector<RoutingFloor>& floors_;
  RoutingFloor floor_;  ///< of the microbatches that are visited
  const Layout& layout_;
  const double crowding_;
  Mesh mesh_;
  std::int64_t rank_;
  int layers_ = 0;
  std::array<std::optional<GroupShape>, kAxes> groups_;
  LaneSeconds lane_s_{};
  double blocking_s_ = 0;  ///< of the compute lane, a tensor group's collectives
  double cpu_s_ = 0;       ///< of all ranks of the stage, on shared cores
};

}  // namespace

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
      for (std::int64_t r : ranks) {
        const auto& sends = table.sends(microbatch, layer, r);
        const std::size_t n = static_cast<std::size_t>(layout.expert),
                          own = static_cast<std::size_t>(layout.row_rank(r) % layout.expert);
        double sent = 0;
        for (std::size_t e = 0; e < n; ++e) sent += sends[own * n + e];
        const double received = table.rows(microbatch, layer, r), kept = sends[own * n + own];
        floor = lower(floor, {received, sent > 0 ? 1 - kept / sent : 0, received - kept});
      }
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
  const std::size_t r =
      static_cast<std::size_t>(std::find(group.ranks.begin(), group.ranks.end(), rank) - group.ranks.begin());
  const RankTasks& tasks = bound->tasks.ranks[r];
  const RankProgram& program = *tasks.program;
  std::vector<double> done(program.ops.size(), 0.0);
  double host = 0, cpu_s = 0, end = 0;
  Occupation occupation(program, bound->tasks.slowdown);
  for (std::size_t i = 0; i < done.size(); ++i) {
    const int index = static_cast<int>(i);
    double start = bound->tasks.synchronous_host ? host : 0;
    for (int wait : program.ops[i].waits) start = std::max(start, done[static_cast<std::size_t>(wait)]);
    if (bound->tasks.synchronous_host) host = start;
    for (int previous : {program.lane_previous[i], program.communicator_previous[i]})
      if (previous >= 0) start = std::max(start, done[static_cast<std::size_t>(previous)]);
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
    if (bound->tasks.synchronous_host && program.on_host(index)) host = done[i];
    end = std::max(end, done[i]);
  }
  if (!flat.shared_cores()) return std::max(end, occupation.bound_s(bound->tasks, tasks));
  for (const RankTasks& each : bound->tasks.ranks)
    for (double seconds : each.seconds) cpu_s += seconds;
  for (const CollectiveTask& task : bound->tasks.collectives)
    for (double cpu : task.cpu_s) cpu_s += cpu;
  return std::max(end, cpu_s / flat.cores);
}

}  // namespace wt
