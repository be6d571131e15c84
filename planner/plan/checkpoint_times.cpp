#include "planner/plan/checkpoint_times.hpp"

#include <algorithm>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/number.hpp"
#include "configs/spec/support/quantity.hpp"
#include "configs/spec/support/text.hpp"
#include "planner/plan/plan_cost.hpp"
#include "planner/search/scaled_cost.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/program/build/restore.hpp"

namespace wt {
namespace {

double state_bytes(const StudySpec& s) {
  return s.checkpoint.bytes_per_parameter * as_double(s.model.total_parameters());
}

/// Seconds of the slowest of all nodes at once: what the storage gives them, or what one of them does.
double at_storage(double total, double storage_Bps, double fullest_node, double node_Bps) {
  return std::max(total / storage_Bps, fullest_node / node_Bps);
}

}  // namespace

StateParts state_parts(const Layout& layout, const std::vector<double>& elements, double bytes_per_parameter,
                       std::int64_t gpus_per_node) {
  const std::int64_t ranks = layout.state_ranks() / layout.pipeline;  // neighbours, from the first one of each stage
  StateParts out;
  std::int64_t node = -1;
  double here = 0;  // bytes of that node
  for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) {
    const double bytes = bytes_per_parameter * elements[static_cast<std::size_t>(stage)];
    out.rank_bytes = std::max(out.rank_bytes, bytes);
    for (std::int64_t rank = stage * layout.stage_ranks(), end = rank + ranks; rank < end;) {
      const std::int64_t next = std::min(end, (rank / gpus_per_node + 1) * gpus_per_node);
      if (rank / gpus_per_node != node) here = 0, node = rank / gpus_per_node, ++out.nodes;
      here += as_double(next - rank) * bytes;
      out.node_bytes = std::max(out.node_bytes, here);
      rank = next;
    }
  }
  return out;
}

CheckpointSeconds checkpoint_seconds(const StudySpec& s, const StateParts& parts) {
  const ClusterSpec& c = s.cluster;
  if (c.storage_write_Bps <= 0)
    throw_error(Code::usage, "cluster {}: describes no storage, which checkpoints need; add a storage section", c.name);
  const double total = state_bytes(s), scale = s.scale.storage_bandwidth;
  return {parts.rank_bytes / s.checkpoint.copy_Bps,
          at_storage(total, scale * c.storage_write_Bps, parts.node_bytes, scale * c.storage_node_write_Bps),
          at_storage(total, scale * c.storage_read_Bps, parts.node_bytes, scale * c.storage_node_read_Bps)};
}

CheckpointTimes checkpoint_times(const PlanInputs& inputs, const Layout& layout) {
  const StudySpec& s = inputs.study;
  const ClusterSpec& c = s.cluster;
  const ScaledCost cost(*inputs.prices, s.scale);
  const SearchProblem problem = search_problem(inputs, cost);
  const StateParts parts = state_parts(layout, state_elements_of_stages(s.model, dealt(problem, layout)),
                                       s.checkpoint.bytes_per_parameter, c.gpus_per_node);
  const CheckpointSeconds seconds = checkpoint_seconds(s, parts);
  CheckpointTimes t;
  t.total_bytes = state_bytes(s);
  t.bytes_per_rank = parts.rank_bytes;
  if (!c.shared_cores())
    t.nic_share = parts.node_bytes / seconds.persist / (c.nic_Bps * s.scale.network_bandwidth * as_double(c.nic_count));
  const auto at = [](double Bps) { return fmt::format("{:.1f} GB/s", Bps / 1e9); };
  const auto source = c.sources.find("storage");
  const std::vector<Provenance> storage =
      source == c.sources.end() ? std::vector<Provenance>{{Evidence::assumed, "not described"}} : source->second;
  t.blocking_s = {
      seconds.blocking,
      {s.checkpoint.evidence.kind, fmt::format("{} a rank to host memory at {} ({})", format_bytes(t.bytes_per_rank),
                                               at(s.checkpoint.copy_Bps), s.checkpoint.evidence.source)}};
  t.persist_s = {seconds.persist,
                 {weakest(storage),
                  fmt::format("{} by one replica's {} at {} ({})", format_bytes(t.total_bytes),
                              counted(parts.nodes, "node"), at(t.total_bytes / seconds.persist), to_string(storage))}};
  const std::int64_t copies = Mesh(layout).size(state_copies_axis(layout));
  const double broadcast_s = copies > 1 ? restore_broadcast_s(problem, layout, s.checkpoint.bytes_per_parameter) : 0;
  std::string reload =
      fmt::format("one replica reads {} at {}", format_bytes(t.total_bytes), at(t.total_bytes / seconds.read));
  if (copies > 1)
    reload += fmt::format(" and broadcasts its shards to {} others in {} (simulated)", copies - 1,
                          format_seconds(broadcast_s));
  t.reload_s = {seconds.read + broadcast_s, {weakest(storage), reload}};
  return t;
}

SourcedNumber persist_slowdown(const PlanInputs& inputs, const CheckpointTimes& checkpoint, const Simulated& step) {
  constexpr double kMostOfNics = 0.9;  // training still gets through
  if (inputs.study.cluster.shared_cores() || checkpoint.nic_share <= 0) return {};
  const double u = std::min(kMostOfNics, checkpoint.nic_share), exposed = step_use(step).communicating;
  return {std::min(kMostOfNics, exposed * u / (1 - u)),
          {Evidence::derived,
           fmt::format("writes take {:.2g} % of a node's NICs, {:.0f} % of the step waits for communication", 100 * u,
                       100 * exposed)}};
}

}  // namespace wt
