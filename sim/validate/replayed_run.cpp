#include "sim/validate/replayed_run.hpp"

#include <algorithm>
#include <variant>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/error.hpp"
#include "sim/machine/remembered_cost.hpp"
#include "sim/program/mesh.hpp"
#include "sim/program/named_routing.hpp"
#include "sim/replay/replay.hpp"
#include "sim/validate/expert_loads.hpp"
#include "sim/validate/fabric.hpp"
#include "sim/validate/stack_cost.hpp"

namespace wt {
namespace {

void check_replayed(const RunRow& run) {
  if (!run.unusable.empty()) throw_error(Code::usage, "{}", run.unusable);
  if (run.gpus > ReplayedRuns::kMostGpus) throw_error(Code::usage, "more than {} GPUs: not replayed", ReplayedRuns::kMostGpus);
  if (run.tp > 1) throw_error(Code::usage, "tensor groups of {}: not replayed", run.tp);
  if (run.pp > 1) throw_error(Code::usage, "a pipeline of {} stages: not replayed", run.pp);
  if (run.precision == "fp8") throw_error(Code::usage, "fp8 products: not replayed");
  if (run.exchange_overlapped) throw_error(Code::usage, "rows that travel beside another microbatch: not replayed");
  if (!run.flash_attention) throw_error(Code::usage, "attention that keeps its scores: not replayed");
}

/// What travels as this run's framework sends it: gradients in another type than fp32, rows once to each place.
void scale_traffic(std::vector<Node>& nodes, const RunRow& run, const Mesh& mesh) {
  for (Node& node : nodes) {
    if (Loop* loop = std::get_if<Loop>(&node)) {
      scale_traffic(loop->body, run, mesh);
      continue;
    }
    Op& op = std::get<Op>(node);
    double factor = 1;
    if (op.action == Action::reduce_gradients || op.action == Action::reduce_replicas) factor = run.gradient_bytes / 4;
    if (op.action == Action::dispatch || op.action == Action::collect) {
      const Axis axis = op.collective.axis;
      factor = share_sent(run, RunFabric::group(mesh.size(axis), mesh.stride(axis), nvlink_domain(run)));
    }
    op.collective.bytes.fixed *= factor;
    op.collective.bytes.per_row *= factor;
  }
}

double replayed_s(const RunRow& run, const Layout& layout, std::int64_t microbatches, const ClusterSpec& cluster,
                  const OpCost& cost) {
  ProgramOptions options;
  options.seq = run.seq;
  options.microbatches = microbatches;
  options.precision = Precision::bf16;
  ProgramSet programs = build_program_set(run.model, layout, options);
  for (Program& program : programs.programs) scale_traffic(program.nodes, run, Mesh(layout));
  const std::int64_t tokens = run.microbatch * run.seq / run.cp;
  const std::string histogram = expert_loads(run).histogram;
  const NamedRouting routing = read_routing({histogram.empty() ? "balanced" : histogram}, run.model, {microbatches, tokens, tokens});
  return replay(programs, layout, run.model, cluster, cost, *routing.source, {.timelines = false, .health = {}}).step_s;
}

}  // namespace

ClusterSpec cluster_of(const RunRow& run) {
  const auto sheet = data_sheet(run.gpu);
  if (!sheet) throw_error(Code::usage, "no data sheet of '{}'", run.gpu);
  ClusterSpec c;
  c.name = run.name;
  c.gpu_name = run.gpu;
  c.gpus_per_node = std::min(run.gpus, nvlink_domain(run));
  c.nodes = (run.gpus + c.gpus_per_node - 1) / c.gpus_per_node;
  c.nvswitch_Bps = sheet->link_Bps;
  c.nodes_per_leaf = c.nodes;
  c.nic_count = c.gpus_per_node;
  c.nic_Bps = 1;  // of one node nothing travels over it
  if (c.nodes == 1) return c;
  const FabricText text = fabric_text(run);
  CollectiveRow words;
  words.fabric = text.fabric;
  const auto fabric = fabric_of(words);
  if (!fabric) throw_error(Code::usage, "adapters of '{}' not known", run.interconnect);
  c.nic_Bps = fabric->node_Bps / static_cast<double>(c.nic_count);
  c.transport = fabric->transport;
  return c;
}

ReplayedRuns::ReplayedRuns(const RunReference& reference)
    : gpu_(std::make_shared<GpuTimes>(reference.kernels)), fabric_(std::make_shared<RunFabric>(reference.collectives)) {}

double ReplayedRuns::seconds(const RunRow& run, const StepTraits& traits, const StepConstants& constants) const {
  check_replayed(run);
  const Layout layout = layout_of(run);
  const ClusterSpec cluster = cluster_of(run);
  const StackCost priced(cluster, run, {constants, traits.ampere_attention}, gpu_, fabric_);
  const RememberedCost cost(priced);
  const std::int64_t microbatches = run.accumulation;
  double seconds = replayed_s(run, layout, std::min(microbatches, kReplayed), cluster, cost);
  if (microbatches > kReplayed) {
    const double last = seconds - replayed_s(run, layout, kReplayed - 1, cluster, cost);
    seconds += static_cast<double>(microbatches - kReplayed) * last;
  }
  return seconds + constants[StepConstant::step_s];
}

}  // namespace wt
