#include "sim/bounds/op_seconds.hpp"

#include <algorithm>
#include <limits>

#include "configs/base/number.hpp"
#include "sim/replay/rank_program.hpp"

namespace wt {
namespace {

/// The number of ranks that certainly do the same work. With copies of experts, expert ranks differ.
double equal_ranks(const Op& op, std::int64_t ranks) {
  return op.action == Action::exchange_copies || op.action == Action::add_copies ? 1 : as_double(ranks);
}

/// Least time of n executions of cpu_s each, if an execution uses at most one core.
double on_cores(double cpu_s, double n, double cores) { return std::max(cpu_s, n * cpu_s / cores); }

}  // namespace

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

double least_message_s(const ClusterSpec& cluster, const OpCost& cost, double bytes, std::int64_t distance) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t nodes : {1, 2}) {
    if (nodes == 1 && distance >= cluster.gpus_per_node) continue;
    const CollectiveEstimate estimate = cost.collective(OpKind::send, bytes, 2, nodes);
    const double Bps = nodes == 1 ? cluster.nvswitch_Bps : cluster.nic_per_gpu_Bps();
    least = std::min(
        least, estimate.latency_s + (cluster.shared_cores() ? estimate.cpu_s : bytes / (Bps * estimate.efficiency)));
  }
  return least;
}

OpSeconds::OpSeconds(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost, std::int64_t rank,
                     const ClusterSpec* mixed)
    : cluster_(cluster),
      mixed_(mixed),
      cost_(cost),
      layout_(layout),
      crowding_(cluster.shared_cores() ? cost.traits().crowding_of(layout.world()) : 1),
      mesh_(layout),
      rank_(rank) {}

OpSeconds::Of OpSeconds::of(const Op& op, const RoutingFloor& floor) {
  if (op.exchanges_rows() || depends_on_rows(op)) return seconds_of(op, floor);
  const auto [entry, fresh] = known_.try_emplace(&op);
  if (fresh) entry->second = seconds_of(op, floor);
  return entry->second;
}

OpSeconds::Of OpSeconds::seconds_of(const Op& op, const RoutingFloor& floor) {
  if (op.kind == OpKind::host) return {};
  if (op.kind != OpKind::segment && op.kind != OpKind::copy) return collective(op, floor);
  const double seconds = cost_.segment(op, floor.rows).seconds * crowding_;
  return {seconds, seconds * equal_ranks(op, layout_.stage_ranks())};
}

OpSeconds::Of OpSeconds::collective(const Op& op, const RoutingFloor& floor) {
  if (op.kind == OpKind::send || op.kind == OpKind::receive) {
    const std::int64_t stages = op.collective.stages;
    return {least_message_s(cluster_, cost_, op.collective.bytes.fixed,
                            std::abs(stages) * mesh_.stride(op.collective.axis))};
  }
  std::optional<GroupShape>& group = groups_[static_cast<std::size_t>(op.collective.axis)];
  if (!group) group = shape(op.collective.axis);
  if (group->size == 1) return {};
  const double bytes = op.collective.bytes.at(floor.rows);
  CollectiveEstimate estimate = cost_.collective(op.kind, bytes, group->size, group->nodes);
  if (cluster_.shared_cores()) {
    const double own_s = on_cores(estimate.cpu_s, equal_ranks(op, group->size), cluster_.cores);
    return {estimate.latency_s + own_s, estimate.cpu_s * equal_ranks(op, layout_.stage_ranks())};
  }
  if (op.kind != OpKind::all_to_all) {
    if (op.exchanges_rows())
      estimate = cost_.row_exchange(estimate, layout_.dispatcher, op.collective.row_bytes, group->nodes);
    return {estimate.latency_s + ring_bytes(op.kind, bytes, group->size) / estimate.efficiency *
                                     (op.kind == OpKind::all_reduce ? reduce_s_per_byte(*group, estimate.algorithm)
                                                                    : group->gather_s_per_byte)};
  }
  const bool routed = op.exchanges_rows();
  if (const PortRows& rows = op.collective.bytes.per_row != 0 ? floor.collected : floor.dispatched;
      routed && rows.nic + rows.nvlink > 0) {
    // The group's largest transfer decides how well links are used. It has at most all rows of the group.
    const CollectiveEstimate fullest =
        cost_.row_exchange(cost_.collective(op.kind, bytes * as_double(group->size), group->size, group->nodes),
                           layout_.dispatcher, op.collective.row_bytes, group->nodes);
    const double wire_s = std::max(rows.nic / cluster_.nic_per_gpu_Bps(), rows.nvlink / cluster_.nvswitch_Bps);
    // Ranks that share a token's rows each send a part of these rows.
    const bool back = op.collective.bytes.per_row != 0;
    const double row_bytes = back                               ? op.collective.bytes.per_row
                             : op.collective.kept_row_bytes > 0 ? op.collective.kept_row_bytes
                                                                : op.collective.bytes.fixed / floor.sent_rows;
    return {estimate.latency_s + row_bytes * wire_s / fullest.efficiency};
  }
  const double leaving = !routed ? bytes * as_double(group->size - 1) / as_double(group->size)
                         : op.collective.kept_row_bytes > 0 ? 0  // all may be dropped
                         : op.collective.bytes.per_row != 0 ? op.collective.bytes.per_row * floor.returned_rows
                                                            : op.collective.bytes.fixed * floor.sent_share;
  // Time at the full rate of the port used. Each token sends at least one row.
  const double efficiency =
      routed ? cost_.row_exchange({}, layout_.dispatcher, op.collective.row_bytes, group->nodes).efficiency : 1;
  const double factor = 1 / efficiency / as_double(std::max<std::int64_t>(1, op.collective.rows_of_token));
  return {estimate.latency_s + factor * leaving / (cluster_.nvswitch_Bps + cluster_.nic_per_gpu_Bps())};
}

/// In a cluster of mixed nodes, another kind may decide the algorithm, so the fastest one counts.
double OpSeconds::reduce_s_per_byte(const GroupShape& group, AllReduce algorithm) const {
  return mixed_ ? *std::ranges::min_element(group.reduce_s_per_byte)
                : group.reduce_s_per_byte[static_cast<std::size_t>(algorithm)];
}

GroupShape OpSeconds::shape(Axis axis) const {
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

}  // namespace wt
