#include "sim/fit/step_work.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "configs/base/error.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/host/host_time.hpp"
#include "sim/fit/expert_loads.hpp"
#include "sim/program/mesh.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/walk.hpp"
#include "sim/question/step_program.hpp"

namespace wt {
namespace {

constexpr std::array kPhases = {&StepWork::forward, &StepWork::backward, &StepWork::ends};

/// Adds up the work of a program, op by op with the repeat counts of its loops.
class Sums {
 public:
  Sums(const RunRow& run, const Layout& layout, const DataSheet& sheet, const BenchmarkTimes& benchmarks,
       const StackSpec& stack, bool resident)
      : run_(run),
        sheet_(sheet),
        benchmarks_(benchmarks),
        machine_(machine_of(run.gpu, run.interconnect)),
        mesh_(layout),
        resident_(resident) {
    const double tokens = static_cast<double>(run.microbatch * run.seq) / static_cast<double>(run.cp);
    rows_ = tokens * static_cast<double>(run.model.top_k) * expert_loads(run).fullest;  // all wait for the fullest
    if (layout.whole_experts) rows_ /= static_cast<double>(run.tp);
    choice_ = KernelChoice(run.precision.precisions, stack.attention, stack.grouped_products, sheet);
  }

  void add(const Program& program) {
    for_each_op(program.nodes, [this](const Op& op, const LoopsAround& around) {
      if (op.kind == OpKind::segment || op.kind == OpKind::copy) work(op, around.times);
      if (collective(op)) communicate(op, around.times, around.microbatches != nullptr);
    });
  }

  StepWork out;

 private:
  static bool collective(const Op& op) {
    return op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_reduce ||
           op.kind == OpKind::all_to_all;
  }

  PhaseWork& phase(const Op& op) {
    if (at_ends(op)) return out.ends;
    return op.direction == Direction::forward ? out.forward : out.backward;
  }

  void work(const Op& op, double times) {
    PhaseWork& p = phase(op);
    if (op.action != Action::optimizer && op.action != Action::gradient_norm) {
      Launches launches;
      launches.add(op.work, times);
      p.launches += launches.kernels, p.routings += launches.routings;
      p.routings_back += launches.routings_back;
    }
    const KernelChoice choice = at_ends(op) ? choice_.in_16_bits() : choice_;
    for (const WorkItem& item : op.work) {
      const ItemTime time = benchmarks_.items->item(item, rows_, choice, sheet_);
      if (op.action == Action::optimizer || op.action == Action::gradient_norm) {
        out.optimizer_s += times * time.sum_s();
        continue;
      }
      p.products.add(time.products, times);
      p.attention_s += times * time.attention_s;
      p.memory_s += times * time.memory_s;
    }
  }

  void communicate(const Op& op, double times, bool in_microbatch) {
    const Axis axis = op.collective.axis;
    const RankGroup group = RankGroup::strided(mesh_.size(axis), mesh_.stride(axis), machine_.nvlink_domain);
    double bytes = op.collective.bytes.at(rows_);
    const bool rows = op.exchanges_rows();
    if (rows) bytes *= share_sent(run_, group);
    const double seconds = times * seconds_of(op, {op.kind, bytes, group, machine_});
    PhaseWork& p = phase(op);
    const bool once =
        resident_ || !in_microbatch || op.action == Action::reduce_replicas || op.action == Action::refresh;
    if (axis == Axis::tensor) {
      p.tensor_s += seconds;
      p.tensor_calls += times;
    } else if (rows) {
      (sends_once(run_.dispatcher) ? p.once_exchange_s : p.exchange_s) += seconds;
    } else if (axis == Axis::expert || axis == Axis::context) {
      p.exchange_s += seconds;
    } else if (once) {
      out.replicas_s += seconds;
    } else {
      (op.direction == Direction::forward ? out.forward : out.backward).gather_s += seconds;
    }
  }

  double seconds_of(const Op& op, const CollectiveQuestion& question) const {
    const auto message = op.exchanges_rows() && question.many()
                             ? benchmarks_.row_messages->of(run_.dispatcher, machine_.transport)
                             : std::nullopt;
    if (!message) return benchmarks_.collectives->seconds(question);
    const CollectiveEstimate estimate =
        one_by_one(benchmarks_.collectives->estimate(question), *message, op.collective.row_bytes, machine_.nic_Bps);
    return estimate.latency_s + wire_s(question, estimate.algorithm) / estimate.efficiency;
  }

  const RunRow& run_;
  const DataSheet& sheet_;
  const BenchmarkTimes& benchmarks_;
  CollectiveMachine machine_;
  Mesh mesh_;
  bool resident_;  ///< weights are gathered and gradients summed once a step
  double rows_ = 0;
  KernelChoice choice_;  ///< for kernels in the layers
};

}  // namespace

namespace {
constexpr std::array kSums = {&PhaseWork::attention_s,  &PhaseWork::memory_s,      &PhaseWork::launches,
                              &PhaseWork::routings,     &PhaseWork::routings_back, &PhaseWork::tensor_s,
                              &PhaseWork::tensor_calls, &PhaseWork::exchange_s,    &PhaseWork::once_exchange_s,
                              &PhaseWork::gather_s};
}

double share_sent(const RunRow& run, const RankGroup& group) {
  if (!sends_once(run.dispatcher)) return 1;
  return share_sent_once(1 / static_cast<double>(group.nodes > 1 ? group.nodes : group.ranks), run.model.top_k);
}

StepWork step_work(const RunRow& run, const BenchmarkTimes& benchmarks, const StackSpec& stack) {
  if (!run.unusable.empty()) throw_usage("{}", run.unusable);
  const auto sheet = data_sheet(run.gpu);
  if (!sheet) throw_usage("no data sheet of '{}'", run.gpu);
  // The fullest stage: layers over stages, rounded up. Modules of multi-token prediction count as layers.
  ModelSpec part = run.model;
  part.layers = std::max<std::int64_t>(1, (run.model.blocks() + run.pp - 1) / run.pp - run.model.mtp_layers);
  auto [model, layout, options] =
      step_program(part, layout_of(run), program_options(run_spec_of(run)), stack, /*shared_cores=*/false);
  options.last_microbatch = 0;
  options.gradient_bytes = run.gradient_bytes;
  options.memory.resident_weights = stack.memory.resident_weights || run.pp > 1;
  const bool resident = layout.resident_weights() || (options.memory.resident_weights && run.zero_stage < 3);
  const auto of_microbatches = [&](std::int64_t count) {
    options.microbatches = count;
    const ProgramSet set = build_program_set(part, layout, options);
    Sums sums(run, layout, *sheet, benchmarks, stack, resident);
    sums.add(set.programs.front());
    return sums.out;
  };
  StepWork out = of_microbatches(1);
  if (run.accumulation > 1) {
    StepWork two = of_microbatches(2);
    const double more = static_cast<double>(run.accumulation - 1);
    for (double PhaseWork::*sum : kSums)
      for (PhaseWork StepWork::*phase : kPhases) out.*phase.*sum += more * (two.*phase.*sum - out.*phase.*sum);
    for (PhaseWork StepWork::*phase : kPhases) {
      const ProductTime one = (out.*phase).products;
      (out.*phase).products.add((two.*phase).products, more);
      (out.*phase).products.add(one, -more);
    }
    out.replicas_s += more * (two.replicas_s - out.replicas_s);
  }
  out.microbatches = static_cast<double>(run.accumulation);
  out.stages = static_cast<double>(run.pp);
  out.chunks = static_cast<double>(run.vp);
  out.layers = static_cast<double>(run.model.blocks());
  out.stage_layers = static_cast<double>(part.blocks());
  out.ends_as_layers = ends_count_as_layers(run);
  out.tensor_ranks = static_cast<double>(run.tp);
  out.stages_over_nodes = run.pp > 1 && run.gpus > run.interconnect.nvlink_domain;
  out.expert = run.ep;
  out.dispatcher = run.dispatcher;
  out.gathers_overlap = stack.memory.gathers_overlap;
  out.exchange_overlap = run.exchange_overlapped;
  out.graphs = run.cuda_graphs;
  const double tokens = static_cast<double>(run.microbatch * run.seq) / static_cast<double>(run.cp);
  const double word = run.precision.compute == Precision::fp32 ? 4 : 2;
  const double sent =
      tokens * static_cast<double>(run.model.d_model) * word / (run.sequence_parallel ? out.tensor_ranks : 1);
  if (run.pp > 1)
    out.send_s = 2 * out.chunks * out.microbatches *
                 benchmarks.collectives->seconds(
                     {OpKind::send, sent, {2, out.stages_over_nodes ? 2 : 1}, machine_of(run.gpu, run.interconnect)});
  out.model_flops_s = run.model.flops_per_token(run.seq) * static_cast<double>(run.tokens()) /
                      static_cast<double>(run.gpus) / sheet->flops;
  return out;
}

}  // namespace wt
