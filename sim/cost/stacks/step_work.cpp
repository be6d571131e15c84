#include "sim/cost/stacks/step_work.hpp"

#include <algorithm>
#include <cmath>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/support/error.hpp"
#include "sim/cost/host/host_time.hpp"
#include "sim/cost/stacks/expert_loads.hpp"
#include "sim/program/mesh.hpp"

namespace wt {
namespace {

/// Adds up the work of a program, node by node with the repeat counts of its loops.
class Sums {
 public:
  Sums(const RunRow& run, const Layout& layout, const DataSheet& sheet, const ItemTimes& gpu,
       const CollectiveEstimator& collectives, AttentionKernels attention)
      : run_(run),
        layout_(layout),
        sheet_(sheet),
        gpu_(gpu),
        collectives_(collectives),
        machine_(machine_of(run)),
        mesh_(layout) {
    const double tokens = static_cast<double>(run.microbatch * run.seq) / static_cast<double>(run.cp);
    rows_ = tokens * static_cast<double>(run.model.top_k) * expert_loads(run).fullest;  // all ranks wait for that one
    choice_ = {product_rate(run, sheet), attention};
  }

  void add(const std::vector<Node>& nodes, double times, bool in_microbatch) {
    for (const Node& node : nodes) {
      if (const Op* op = std::get_if<Op>(&node)) {
        if (op->kind == OpKind::segment || op->kind == OpKind::copy) work(*op, times);
        if (collective(*op)) communicate(*op, times, in_microbatch);
      } else {
        const Loop& loop = std::get<Loop>(node);
        add(loop.body, times * loop.count(), in_microbatch || loop.index == Loop::Index::microbatch);
      }
    }
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
    KernelChoice choice = choice_;
    if (at_ends(op)) choice.relative_rate = 1;
    for (const WorkItem& item : op.work) {
      const ItemTime time = gpu_.item(item, rows_, choice, sheet_);
      if (op.action == Action::optimizer || op.action == Action::gradient_norm) {
        out.optimizer_s += times * time.sum_s();
        continue;
      }
      p.products_s += times * time.products_s;
      p.attention_s += times * time.attention_s;
      p.memory_s += times * time.memory_s;
      p.launches += times * host_launches(item);
    }
  }

  void communicate(const Op& op, double times, bool in_microbatch) {
    if (spread_over_tensor(run_) && exchange_of_all_ranks(op, times)) return;
    const Axis axis = op.collective.axis;
    const RankGroup group = RankGroup::strided(mesh_.size(axis), mesh_.stride(axis), machine_.nvlink_domain);
    double bytes = op.collective.bytes.at(rows_);
    if (op.action == Action::reduce_gradients || op.action == Action::reduce_replicas) bytes *= run_.gradient_bytes / 4;
    const bool rows = op.action == Action::dispatch || op.action == Action::collect;
    if (rows) bytes *= share_sent(run_, group);
    const double seconds = times * collectives_.seconds({op.kind, bytes, group, machine_});
    PhaseWork& p = phase(op);
    const bool once = layout_.resident_weights() || !in_microbatch || op.action == Action::reduce_replicas ||
                      op.action == Action::refresh;
    if (axis == Axis::tensor) {
      p.tensor_s += seconds;
      p.tensor_calls += times;
    } else if (rows && run_.exchange_overlapped) {
      p.gather_s += seconds;
    } else if (axis == Axis::expert || axis == Axis::context) {
      p.exchange_s += seconds;
    } else if (once) {
      out.replicas_s += seconds;
    } else {
      (op.direction == Direction::forward ? out.forward : out.backward).gather_s += seconds;
    }
  }

  /// Where tensor ranks have experts of their own, each sends its own rows to all expert ranks, and nothing is gathered
  /// inside the tensor group.
  bool exchange_of_all_ranks(const Op& op, double times) {
    const bool exchange = op.action == Action::dispatch || op.action == Action::collect;
    const bool inside = op.name.starts_with("rows.");  // gathered and scattered around experts that are cut
    if (!exchange && !(inside && layout_.expert == 1)) return inside;
    const RankGroup group = RankGroup::strided(run_.ep, 1, machine_.nvlink_domain);
    double bytes = op.collective.bytes.at(rows_) / (exchange ? 1 : static_cast<double>(run_.tp));
    bytes *= share_sent(run_, group);
    PhaseWork& p = phase(op);
    (run_.exchange_overlapped ? p.gather_s : p.exchange_s) +=
        times * collectives_.seconds({OpKind::all_to_all, bytes, group, machine_});
    return true;
  }

  const RunRow& run_;
  const Layout& layout_;
  const DataSheet& sheet_;
  const ItemTimes& gpu_;
  const CollectiveEstimator& collectives_;
  CollectiveMachine machine_;
  Mesh mesh_;
  double rows_ = 0;
  KernelChoice choice_;  ///< in the layers
};

}  // namespace

bool at_ends(const Op& op) {
  return op.group == Group::embedding || op.group == Group::head || op.action == Action::embed ||
         op.action == Action::head_loss;
}

double share_sent(const RunRow& run, const RankGroup& group) {
  if (!run.rows_sent_once) return 1;
  const auto places = static_cast<double>(group.nodes > 1 ? group.nodes : group.ranks),
             top_k = static_cast<double>(run.model.top_k);
  return places * (1 - std::pow(1 - 1 / places, top_k)) / top_k;
}

double product_rate(const RunRow& run, const DataSheet& sheet) {
  const auto rate = relative_rate(sheet, run.precision);
  if (!rate || *rate < 1) throw_error(Code::usage, "no model of {} products on {}", run.precision, sheet.name);
  return *rate;
}

StepWork step_work(const RunRow& run, const ItemTimes& gpu, const CollectiveEstimator& collectives,
                   AttentionKernels attention) {
  if (!run.unusable.empty()) throw_error(Code::usage, "{}", run.unusable);
  const auto sheet = data_sheet(run.gpu);
  if (!sheet) throw_error(Code::usage, "no data sheet of '{}'", run.gpu);
  // Stages of a pipeline have equally many layers, or one more: the fullest one.
  ModelSpec stage = run.model;
  stage.layers = (run.model.layers + run.pp - 1) / run.pp;
  const Layout layout = layout_of(run);
  ProgramOptions options;
  options.seq = run.seq;
  options.microbatches = run.accumulation;
  options.precision = Precision::bf16;
  const ProgramSet set = build_program_set(stage, layout, options);
  Sums sums(run, layout, *sheet, gpu, collectives, attention);
  sums.add(set.programs.front().nodes, 1, false);

  StepWork out = sums.out;
  out.microbatches = static_cast<double>(run.accumulation);
  out.stages = static_cast<double>(run.pp);
  out.chunks = static_cast<double>(run.vp);
  out.layers = static_cast<double>(run.model.layers);
  out.stage_layers = static_cast<double>(stage.layers);
  out.ends_as_layers = ends_count_as_layers(run);
  out.tensor_ranks = static_cast<double>(run.tp);
  out.stages_over_nodes = run.pp > 1 && run.gpus > run.interconnect.nvlink_domain;
  out.fp8 = run.precision == "fp8" ? 1 : 0;
  const double tokens = static_cast<double>(run.microbatch * run.seq) / static_cast<double>(run.cp);
  const double sent =
      tokens * static_cast<double>(run.model.d_model) * 2 / (run.sequence_parallel ? out.tensor_ranks : 1);
  if (run.pp > 1)
    out.send_s = 2 * out.chunks * out.microbatches *
                 collectives.seconds({OpKind::send, sent, {2, out.stages_over_nodes ? 2 : 1}, machine_of(run)});
  out.model_flops_s = run.model.flops_per_token(run.seq) * static_cast<double>(run.tokens()) /
                      static_cast<double>(run.gpus) / sheet->flops;
  return out;
}

}  // namespace wt
