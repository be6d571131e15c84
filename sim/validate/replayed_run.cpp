#include "sim/validate/replayed_run.hpp"

#include <algorithm>
#include <variant>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/support/error.hpp"
#include "sim/cost/remembered_cost.hpp"
#include "sim/cost/stacks/expert_loads.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/program/mesh.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/replay.hpp"

namespace wt {
namespace {

void check_replayed(const RunRow& run) {
  if (!run.unusable.empty()) throw_error(Code::usage, "{}", run.unusable);
  if (run.gpus > ReplayedRuns::kMostGpus)
    throw_error(Code::usage, "more than {} GPUs: not replayed", ReplayedRuns::kMostGpus);
  if (run.vp > 1 && run.accumulation % run.pp != 0)
    throw_error(Code::usage, "{} microbatches through {} interleaved stages: not replayed", run.accumulation, run.pp);
  if (ends_count_as_layers(run)) throw_error(Code::usage, "stages of unlike numbers of layers: not replayed");
  if (run.whole_experts && run.tp > 1 && run.ep > 1)
    throw_error(Code::usage, "tensor ranks with experts of their own: not replayed");
  if (run.exchange_overlapped) throw_error(Code::usage, "rows that travel beside another microbatch: not replayed");
}

/// What travels as this run's framework sends it: gradients in another type than fp32, rows once to each place, and of
/// a tensor group's collectives what it leaves exposed.
void scale_traffic(std::vector<Node>& nodes, const RunRow& run, const Mesh& mesh, double tensor_share) {
  for (Node& node : nodes) {
    if (Loop* loop = std::get_if<Loop>(&node)) {
      scale_traffic(loop->body, run, mesh, tensor_share);
      continue;
    }
    Op& op = std::get<Op>(node);
    double factor = 1;
    if (op.action == Action::reduce_gradients || op.action == Action::reduce_replicas) factor = run.gradient_bytes / 4;
    if (op.collective.axis == Axis::tensor) factor = tensor_share;
    if (op.action == Action::dispatch || op.action == Action::collect) {
      const Axis axis = op.collective.axis;
      factor = share_sent(run, RankGroup::strided(mesh.size(axis), mesh.stride(axis), run.interconnect.nvlink_domain));
    }
    op.collective.bytes.fixed *= factor;
    op.collective.bytes.per_row *= factor;
  }
}

double replayed_s(const RunRow& run, const Layout& layout, std::int64_t microbatches, const ClusterSpec& cluster,
                  const OpCost& cost, double tensor_share) {
  ProgramOptions options;
  options.seq = run.seq;
  options.microbatches = microbatches;
  options.precision = Precision::bf16;
  ProgramSet programs = build_program_set(run.model, layout, options);
  for (Program& program : programs.programs) scale_traffic(program.nodes, run, Mesh(layout), tensor_share);
  const std::int64_t tokens = run.microbatch * run.seq / run.cp;
  const std::string histogram = expert_loads(run).histogram;
  const NamedRouting routing =
      read_routing({histogram.empty() ? "balanced" : histogram}, run.model, {microbatches, tokens, tokens});
  return replay(programs, layout, run.model, cluster, cost, *routing.source, {.timelines = false, .health = {}}).step_s;
}

}  // namespace

ClusterSpec cluster_of(const RunRow& run) {
  const auto sheet = data_sheet(run.gpu);
  if (!sheet) throw_error(Code::usage, "no data sheet of '{}'", run.gpu);
  ClusterSpec c;
  c.name = run.name;
  c.gpu_name = run.gpu;
  c.gpus_per_node = std::min(run.gpus, run.interconnect.nvlink_domain);
  c.nodes = (run.gpus + c.gpus_per_node - 1) / c.gpus_per_node;
  if (c.gpus_per_node > run.gpus_per_node && run.gpus % c.nodes == 0)
    c.gpus_per_node = run.gpus / c.nodes;  // racks, filled evenly
  c.nvswitch_Bps = sheet->link_Bps;
  c.nodes_per_leaf = c.nodes;
  c.nic_count = c.gpus_per_node;
  c.nic_Bps = 1;  // of one node nothing travels over it
  if (c.nodes == 1) return c;
  c.nic_Bps = machine_of(run).nic_Bps;
  c.transport = run.interconnect.transport;
  return c;
}

ReplayedRuns::ReplayedRuns(const RunReference& reference, bool every_microbatch)
    : every_microbatch_(every_microbatch),
      gpu_(std::make_shared<GpuTimes>(reference.kernels)),
      fabric_(std::make_shared<CollectiveEstimator>(points_of(reference.collectives))) {}

double ReplayedRuns::seconds(const RunRow& run, const StepTraits& traits, const StepConstants& constants) const {
  check_replayed(run);
  Layout layout = layout_of(run);
  layout.pipeline = run.pp, layout.virtual_stages = run.vp;
  const ClusterSpec cluster = cluster_of(run);
  const StackCost priced(cluster, run, {constants, traits.ampere_attention, traits.separate_reduce_group}, gpu_,
                         fabric_);
  const RememberedCost cost(priced);
  const auto replayed = [&](std::int64_t microbatches) {
    return replayed_s(run, layout, microbatches, cluster, cost, constants[StepConstant::tensor]);
  };
  // A pipeline is full with as many microbatches as stages, and its chunks want multiples of these.
  const std::int64_t full = run.pp > 1 ? run.pp : kReplayed - 1, period = run.pp > 1 ? run.pp : 1, most = full + period;
  if (every_microbatch_ || run.accumulation <= most)
    return replayed(run.accumulation) + constants[StepConstant::step_s];
  const double more_s = replayed(most), last_s = (more_s - replayed(full)) / static_cast<double>(period);
  return more_s + static_cast<double>(run.accumulation - most) * last_s + constants[StepConstant::step_s];
}

}  // namespace wt
