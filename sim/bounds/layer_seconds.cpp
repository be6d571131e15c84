#include "sim/bounds/layer_seconds.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "configs/base/number.hpp"
#include "sim/bounds/op_seconds.hpp"
#include "sim/program/lane_clock.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

/// Excludes ops that keep and send weights and gradients: layouts with the same computation differ in these.
bool of_every_layout(const Op& op) {
  switch (op.action) {
    case Action::embed:
    case Action::project:
    case Action::attention:
    case Action::ffn:
    case Action::experts:
    case Action::combine:
    case Action::head_loss:
      return op.kind == OpKind::segment;
    case Action::share_tensor:
      return op.lane == Lane::compute;
    case Action::dispatch:
    case Action::collect:
    case Action::gather_kv:
      return op.collective_kind();
    default:
      return false;
  }
}

void operator+=(PassSeconds& sum, const PassSeconds& more) {
  sum.compute += more.compute, sum.exchange += more.exchange, sum.path += more.path, sum.exposed += more.exposed;
  sum.again += more.again;
}

void operator+=(PassSeconds& sum, double compute_s) { sum.compute += compute_s, sum.path += compute_s; }

/// An op of a pass through a layer, and the ops of the pass that it waits for.
struct PassOp {
  const Op* op;
  double launch_s;
  std::vector<std::size_t> waits;
  bool gathers_keys() const { return op->action == Action::gather_kv; }
};

/// One pass through one layer: its ops in order on their lanes.
class LayerPass {
 public:
  explicit LayerPass(const std::vector<PassOp>& ops) : ops_(ops) {
    with_keys_.done_s.reserve(ops.size()), without_keys_.done_s.reserve(ops.size());
  }
  /// Adds the next op. `own_s`: seconds of the rank's own part; `all_s`: until the last rank of its group is done.
  void add(double own_s, double all_s) {
    const PassOp& next = ops_[with_keys_.done_s.size()];
    const Op& op = *next.op;
    with_keys_.add(next, all_s);
    if (op.direction == Direction::recompute) out_.again += all_s + (next.gathers_keys() ? 0 : next.launch_s);
    if (next.gathers_keys()) {  // the host does not wait for it, and it exchanges no rows
      without_keys_.done_s.push_back(0);
      return;
    }
    without_keys_.add(next, all_s);
    const bool computes = op.lane == Lane::compute;
    if (!computes) exchange_s_ += all_s;
    (computes ? out_.compute : out_.exchange) += own_s;
    sum_s_ += all_s;
    (computes ? launch_s_ : exchange_launch_s_) += next.launch_s;
  }
  PassSeconds take(const OpCost& cost) {
    // Delays by a slow host may hide travelling rows, if the lane computes anything meanwhile.
    const double beside = without_keys_.compute_s() < sum_s_ * (1 - 1e-12) ? exchange_s_ : 0;
    out_.path = std::max(with_keys_.compute_s(), cost.issued_s(sum_s_, launch_s_ + exchange_launch_s_) - beside);
    out_.compute = cost.issued_s(out_.compute, launch_s_);
    out_.exposed = std::max(0.0, out_.path - out_.compute);
    out_.again = std::min(out_.again, out_.path);
    return out_;
  }

 private:
  struct Lanes {
    std::vector<double> done_s;  ///< by op
    LaneClock clock;

    void add(const PassOp& next, double seconds) {
      double ready = 0;
      for (const std::size_t before : next.waits) ready = std::max(ready, done_s[before]);
      done_s.push_back(clock.start_s(next.op->lane, ready) + seconds);
      clock.end(next.op->lane, done_s.back());
    }
    double compute_s() const { return clock.lane_s(Lane::compute); }
  };

  const std::vector<PassOp>& ops_;
  Lanes with_keys_, without_keys_;  ///< with and without the gathers of context parallelism
  double sum_s_ = 0, launch_s_ = 0, exchange_launch_s_ = 0, exchange_s_ = 0;
  PassSeconds out_;
};

class LayerSums {
 public:
  LayerSums(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost, const LayerLoads& loads,
            std::int64_t rank, int layers)
      : layout_(layout), cost_(cost), seconds_(layout, cluster, cost, rank, nullptr), loads_(loads) {
    out_.forward.resize(static_cast<std::size_t>(layers));
    out_.backward = out_.forward;
  }

  void visit(const Program& program) {
    for_each_op(
        program.nodes,
        [this](const Op& op, const LoopsAround&) {
          if (of_every_layout(op)) add_around(op);
        },
        [this](const Loop& loop) {
          if (loop.index == Loop::Index::layer) add_layers(loop);
          return loop.index == Loop::Index::microbatch && loop.first == 0;
        });
  }

  LayerSeconds take() { return std::move(out_); }

 private:
  void add_layers(const Loop& loop) {
    const std::vector<PassOp> forward = pass_of(loop.body, true), backward = pass_of(loop.body, false);
    for (const int round : rounds_of(loop)) {
      const std::size_t layer = static_cast<std::size_t>(round);
      out_.forward[layer] += seconds_of(forward, layer);
      out_.backward[layer] += seconds_of(backward, layer);
    }
  }

  /// The ops of one direction in a layer's body.
  std::vector<PassOp> pass_of(const std::vector<Node>& body, bool forward) const {
    std::vector<PassOp> out;
    std::map<std::string_view, std::size_t> numbers;
    for (const Op& op : ops_of(body)) {
      if (op.layer_delta != 0 || !of_every_layout(op)) continue;
      if (op.exchanges_rows() && !loads_.sent) continue;
      if (op.collective_kind() && loads_.kernels_alone) continue;
      if ((op.direction == Direction::forward) != forward) continue;
      PassOp next{&op, loads_.sent ? cost_.launch_s(op, layout_) : 0, {}};
      for (const Ref& wait : op.waits)
        if (const auto before = numbers.find(wait.name); before != numbers.end() && wait.layer_delta == 0)
          next.waits.push_back(before->second);
      numbers[op.name] = out.size();
      out.push_back(std::move(next));
    }
    return out;
  }

  PassSeconds seconds_of(const std::vector<PassOp>& ops, std::size_t layer) {
    const bool routed = layer < loads_.own.size();
    const RoutingFloor own = routed ? loads_.own[layer] : RoutingFloor{},
                       fullest = layer < loads_.fullest.size() ? loads_.fullest[layer] : own;
    LayerPass pass(ops);
    for (const PassOp& each : ops) {
      const double own_s = seconds_.of(*each.op, own).seconds,
                   all_s = routed ? seconds_.of(*each.op, fullest).seconds : own_s;
      pass.add(own_s, std::max(own_s, all_s));
    }
    return pass.take(cost_);
  }

  /// An op of the embedding or of the head.
  void add_around(const Op& op) {
    if (op.lane != Lane::compute || (op.collective_kind() && loads_.kernels_alone)) return;
    const double seconds = seconds_.of(op, {}).seconds;
    if (op.action == Action::head_loss || op.group == Group::head)
      out_.head += seconds;
    else if (op.action == Action::embed)
      (op.direction == Direction::forward ? out_.embed : out_.embed_backward) += seconds;
  }

  const Layout& layout_;
  const OpCost& cost_;
  OpSeconds seconds_;
  const LayerLoads& loads_;
  LayerSeconds out_;
};

/// A stage's work for one microbatch, its shortest passes, and the work that must come before and after it.
struct StageSeconds {
  PassSeconds work;
  PassSeconds shortest_forward, shortest_backward;
  double around = 0;
  std::int64_t chunks = 0;
};

PassSeconds shorter(const PassSeconds& a, const PassSeconds& b) {
  return {std::min(a.compute, b.compute), std::min(a.exchange, b.exchange), std::min(a.path, b.path),
          std::min(a.exposed, b.exposed), 0};
}

std::vector<StageSeconds> stage_seconds(const LayerSeconds& s, const Layout& layout,
                                        const std::vector<std::int64_t>& chunk_layers) {
  // If weight gradients are computed separately, they fill the time until the last input gradients arrive.
  const bool drains = layout.schedule == Schedule::one_f_one_b;
  std::vector<StageSeconds> out(static_cast<std::size_t>(layout.pipeline));
  double passed = 0;  // passes of earlier chunks, forward and backward
  std::int64_t number = 0;
  for (const ChunkSeconds& chunk : chunk_seconds(s, layout, chunk_layers)) {
    StageSeconds& stage = out[static_cast<std::size_t>(layout.stage_of(number++))];
    if (stage.chunks++ == 0) {
      stage.around = passed;
      stage.shortest_forward = chunk.forward, stage.shortest_backward = chunk.backward;
    }
    stage.shortest_forward = shorter(stage.shortest_forward, chunk.forward);
    stage.shortest_backward = shorter(stage.shortest_backward, chunk.backward);
    stage.work += chunk.forward, stage.work += chunk.backward;
    passed += chunk.forward.path + (drains ? chunk.backward.path - chunk.backward.again : 0);
  }
  return out;
}

/// The number of a stage's forward passes (equally many backward) that overlap no other microbatch's exchange
/// (stage_schedule).
std::int64_t passes_alone(const Layout& l, std::int64_t stage, std::int64_t microbatches) {
  const std::int64_t p = l.pipeline, v = l.virtual_stages, all = microbatches * v;
  if (l.schedule == Schedule::dualpipe_v) {
    const std::int64_t behind = p - stage - 1, ahead = stage + 1;
    return std::max<std::int64_t>(0, all - 2 * (microbatches - 2 * p + ahead) - behind);
  }
  return std::min(all, (p - stage - 1) * (v > 1 ? 2 : 1) + (v - 1) * p + 1);
}

/// The stage's own passes: some alone, the others in pairs of a forward and a backward pass.
double beside_each_other_s(const StageSeconds& s, const Layout& layout, std::int64_t stage, std::int64_t microbatches) {
  const double times = as_double(microbatches), alone = as_double(passes_alone(layout, stage, microbatches)),
               pairs = times * as_double(s.chunks) - alone;
  const PassSeconds &f = s.shortest_forward, &b = s.shortest_backward;
  const double computed = times * s.work.compute + alone * (f.exposed + b.exposed);
  const double paired = std::max({f.compute + b.compute, f.exchange + b.exchange, f.path, b.path});
  return std::max(computed, alone * (f.path + b.path) + pairs * paired);
}

}  // namespace

LayerSeconds layer_seconds(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
                           const LayerLoads& loads, std::int64_t rank) {
  LayerSums sums(layout, cluster, cost, loads, rank, program.layers);
  sums.visit(program);
  return sums.take();
}

std::vector<ChunkSeconds> chunk_seconds(const LayerSeconds& s, const Layout& layout,
                                        const std::vector<std::int64_t>& chunk_layers) {
  const std::size_t modules_at = chunk_layers.size() - (layout.modules_before_head ? 2 : 1);
  const std::int64_t modules = static_cast<std::int64_t>(s.forward.size()) -
                               std::accumulate(chunk_layers.begin(), chunk_layers.end(), std::int64_t{0});
  std::vector<ChunkSeconds> out(chunk_layers.size());
  std::size_t layer = 0;
  for (std::size_t c = 0; c < out.size(); ++c)
    for (std::int64_t i = chunk_layers[c] + (c == modules_at ? modules : 0); i > 0; --i, ++layer)
      out[c].forward += s.forward[layer], out[c].backward += s.backward[layer];
  out.front().forward += s.embed, out.front().backward += s.embed_backward;
  out.back().backward += s.head;
  return out;
}

double least_step_s(const LayerSeconds& s, const Layout& layout, const std::vector<std::int64_t>& chunk_layers,
                    std::int64_t microbatches) {
  const std::vector<StageSeconds> stages = stage_seconds(s, layout, chunk_layers);
  double least = 0;
  for (std::size_t i = 0; i < stages.size(); ++i)
    least = std::max(least, stages[i].around + (layout.exchange_overlap
                                                    ? beside_each_other_s(stages[i], layout,
                                                                          static_cast<std::int64_t>(i), microbatches)
                                                    : as_double(microbatches) * stages[i].work.path));
  return least;
}

}  // namespace wt
