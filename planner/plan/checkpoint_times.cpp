#include "planner/plan/checkpoint_times.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "planner/plan/plan_cost.hpp"
#include "planner/search/scaled_cost.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/program/compose/restore.hpp"

namespace wt {
namespace {

double state_bytes(const StudySpec& s) {
  return s.checkpoint.bytes_per_parameter * as_double(s.model.total_parameters());
}

/// Times of an access to storage, for the slowest node when all access it at once.
struct AtStorage {
  const StorageRate* rows = nullptr;  ///< measured rates; nullptr = as the cluster says
  double latency_s = 0, node_s = 0, all_s = 0;
  double all_Bps = 0;
  double seconds() const { return latency_s + std::max(node_s, all_s); }
};

/// Joint rate of the nodes. If fewer nodes were measured, it is the cluster's rate, unless the rows show a limit, but
/// at least the measured rate.
AtStorage at_storage(const StudySpec& s, const StateParts& parts, bool writes) {
  const ClusterSpec& c = s.cluster;
  if (c.storage_write_Bps <= 0)
    throw_usage("cluster {}: describes no storage, which checkpoints need; add a storage section", c.name);
  const StorageRate& rate = writes ? s.checkpoint.rates.write : s.checkpoint.rates.read;
  AtStorage out{.all_Bps = writes ? c.storage_write_Bps : c.storage_read_Bps};
  double node_Bps = writes ? c.storage_node_write_Bps : c.storage_node_read_Bps;
  if (rate.measured()) {
    out.rows = &rate;
    out.latency_s = rate.latency_s;
    out.all_Bps = rate.limited ? rate.all_Bps : std::max(rate.all_Bps, out.all_Bps);
    node_Bps = rate.node_Bps(std::max<std::int64_t>(1, parts.node_ranks));
  }
  out.all_Bps *= s.scale.storage_bandwidth;
  out.node_s = parts.node_bytes / (node_Bps * s.scale.storage_bandwidth);
  out.all_s = state_bytes(s) / out.all_Bps;
  return out;
}

std::string rate_text(double Bps) { return fmt::format("{:.1f} GB/s", Bps / 1e9); }

Provenance provenance_of(const AtStorage& at, const ClusterSpec& c, const StateParts& parts) {
  const auto found = c.sources.find("storage");
  const std::vector<Provenance> cluster =
      found == c.sources.end() ? std::vector<Provenance>{{Evidence::assumed, "not described"}} : found->second;
  if (at.rows == nullptr) return {weakest(cluster), to_string(cluster)};
  const StorageRate& rows = *at.rows;
  if (rows.limited || parts.nodes <= rows.nodes) return {rows.evidence.kind, to_string(rows.evidence)};
  const bool all = at.all_s > at.node_s;
  return {std::max(all ? weakest(cluster) : Evidence::derived, rows.evidence.kind),
          fmt::format("{}; {} at once get {} ({})", to_string(rows.evidence), counted(parts.nodes, "node"),
                      all ? rate_text(at.all_Bps) + " together"
                          : "as much each, as that is less than the storage's " + rate_text(at.all_Bps),
                      to_string(cluster)),
          all ? std::nullopt : std::optional(rows.evidence.kind)};
}

}  // namespace

StateParts state_parts(const Layout& layout, const std::vector<double>& elements, double bytes_per_parameter,
                       std::int64_t gpus_per_node) {
  const std::int64_t ranks = layout.state_ranks() / layout.pipeline;  // consecutive, from each stage's first rank
  StateParts out;
  std::int64_t node = -1, ranks_here = 0;
  double here = 0;  // bytes of `node`
  for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) {
    const double bytes = bytes_per_parameter * elements[static_cast<std::size_t>(stage)];
    out.rank_bytes = std::max(out.rank_bytes, bytes);
    for (std::int64_t rank = stage * layout.stage_ranks(), end = rank + ranks; rank < end;) {
      const std::int64_t next = std::min(end, (rank / gpus_per_node + 1) * gpus_per_node);
      if (rank / gpus_per_node != node) here = 0, ranks_here = 0, node = rank / gpus_per_node, ++out.nodes;
      here += as_double(next - rank) * bytes;
      ranks_here += next - rank;
      out.node_ranks = std::max(out.node_ranks, ranks_here);
      out.node_bytes = std::max(out.node_bytes, here);
      rank = next;
    }
  }
  return out;
}

CheckpointSeconds checkpoint_seconds(const StudySpec& s, const StateParts& parts) {
  return {parts.rank_bytes / s.checkpoint.copy_Bps, at_storage(s, parts, true).seconds(),
          at_storage(s, parts, false).seconds()};
}

CheckpointTimes checkpoint_times(const PlanInputs& inputs, const Layout& layout) {
  const StudySpec& s = inputs.study;
  const ClusterSpec& c = s.cluster;
  const ScaledCost cost(*inputs.times, s.scale);
  const SearchProblem problem = search_problem(inputs, cost);
  const StateParts parts = state_parts(layout, state_elements_of_stages(s.model, with_stack_chunks(problem, layout)),
                                       s.checkpoint.bytes_per_parameter, c.gpus_per_node);
  const AtStorage write = at_storage(s, parts, true), read = at_storage(s, parts, false);
  const Provenance written = provenance_of(write, c, parts), loaded = provenance_of(read, c, parts);
  CheckpointTimes t;
  t.total_bytes = state_bytes(s);
  t.bytes_per_rank = parts.rank_bytes;
  if (!c.shared_cores())
    t.nic_share = parts.node_bytes / write.seconds() / (c.nic_Bps * s.scale.network_bandwidth * as_double(c.nic_count));
  t.blocking_s = {
      parts.rank_bytes / s.checkpoint.copy_Bps,
      {s.checkpoint.evidence.kind, fmt::format("{} a rank to host memory at {} ({})", format_bytes(t.bytes_per_rank),
                                               rate_text(s.checkpoint.copy_Bps), s.checkpoint.evidence.source)}};
  t.persist_s = {write.seconds(),
                 {written.kind,
                  fmt::format("{} by one replica's {} at {} ({})", format_bytes(t.total_bytes),
                              counted(parts.nodes, "node"), rate_text(t.total_bytes / write.seconds()), written.source),
                  written.root}};
  const std::int64_t copies = Mesh(layout).size(state_copies_axis(layout));
  const double broadcast_s = copies > 1 ? restore_broadcast_s(problem, layout, s.checkpoint.bytes_per_parameter) : 0;
  std::string reload = fmt::format("one replica reads {} at {} ({})", format_bytes(t.total_bytes),
                                   rate_text(t.total_bytes / read.seconds()), loaded.source);
  if (copies > 1)
    reload += fmt::format(" and broadcasts its shards to {} others in {} (simulated)", copies - 1,
                          format_seconds(broadcast_s));
  t.reload_s = {read.seconds() + broadcast_s, {loaded.kind, reload, loaded.root}};
  return t;
}

SourcedNumber persist_slowdown(const PlanInputs& inputs, const CheckpointTimes& checkpoint, const Simulated& step) {
  constexpr double kMostOfNics = 0.9;  // a tenth of the NICs remains for training
  if (inputs.study.cluster.shared_cores() || checkpoint.nic_share <= 0) return {};
  const double u = std::min(kMostOfNics, checkpoint.nic_share), exposed = step_use(step).communicating;
  return {std::min(kMostOfNics, exposed * u / (1 - u)),
          {Evidence::derived,
           fmt::format("writes take {:.2g} % of a node's NICs, {:.0f} % of the step waits for communication", 100 * u,
                       100 * exposed)}};
}

}  // namespace wt
