#include "sim/bounds/pipeline_path.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <unordered_map>

#include "configs/base/error.hpp"
#include "sim/bounds/op_seconds.hpp"
#include "sim/program/lane_clock.hpp"
#include "sim/program/places.hpp"
#include "sim/program/walk.hpp"
#include "sim/replay/rank_program.hpp"

namespace wt {
namespace {

constexpr double kNotYet = -1;
constexpr std::size_t kDirections = 3;
constexpr std::size_t kOwn = 0;  ///< of an op that shares a communicator with no other lane

/// Earliest ends of messages, by sender, receiver and direction.
class Messages {
 public:
  explicit Messages(std::size_t stages) : stages_(stages), sent_(stages * stages * kDirections) {}
  void send(std::size_t from, std::size_t to, Direction way, double done_s) {
    sent_[at(from, to, way)].push_back(done_s);
  }
  /// End of the receiver's `number`-th message; kNotYet if it has not been sent.
  double done_s(std::size_t from, std::size_t to, Direction way, std::size_t number) const {
    const std::vector<double>& sent = sent_[at(from, to, way)];
    return number < sent.size() ? sent[number] : kNotYet;
  }

 private:
  std::size_t at(std::size_t from, std::size_t to, Direction way) const {
    return (from * stages_ + to) * kDirections + static_cast<std::size_t>(way);
  }
  std::size_t stages_;
  std::vector<std::vector<double>> sent_;
};

/// An op of one layer, ready to be replayed for any microbatch.
struct TimedOp {
  const Op* op;
  std::size_t name;
  int layer;
  double own_s;        ///< seconds of the rank's own part
  double fullest_s;    ///< seconds of the fullest rank of its group, for which an exchange of rows waits
  bool routed;         ///< computes rows that an exchange brought
  std::size_t waits;   ///< the first op it waits for
  std::size_t behind;  ///< one past the last op it waits for
  std::size_t communicator = kOwn;
  bool begins_layer = false;
  double least_s = 0;  ///< least seconds since the op that began the layer
};
/// The last compute-lane op that an op depends on, and how long the op is in flight after it.
struct Reach {
  int computed = -1;  ///< index of the compute lane's op; -1 = none
  double in_flight_s = 0;
  auto operator<=>(const Reach&) const = default;
};
/// The compute lane up to one of its ops.
struct Computed {
  double done_s = 0;
  double busy_s = 0;   ///< of this op and all before
  double still_s = 0;  ///< part of busy_s: collectives, which nothing slows
};
struct Wait {
  std::size_t name;
  int microbatch_delta, layer;
  bool exchange;
};

class StageWalk {
 public:
  StageWalk(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
            const LayerLoads& loads, const LayerSeconds* layers, std::int64_t rank, std::size_t stage)
      : program_(program),
        loads_(loads),
        layers_(layers),
        slowdown_(cost.traits().communication_slowdown.share),
        one_communicator_(!cost.traits().separate_reduce_group),
        mesh_(layout),
        seconds_(layout, cluster, cost, rank + static_cast<std::int64_t>(stage) * layout.stage_ranks(), nullptr),
        places_(program.microbatches, program.layers),
        stage_(stage),
        stages_(static_cast<std::size_t>(layout.pipeline)) {
    for (const Node& node : program.nodes) {
      const Loop* loop = std::get_if<Loop>(&node);
      const bool pass = loop && loop->index == Loop::Index::microbatch;
      const auto [entry, fresh] = timed_.try_emplace(pass ? static_cast<const void*>(loop->body.shared()) : &node);
      if (fresh && pass)
        add_pass(loop->body, entry->second);
      else if (fresh)
        for_each_issue({&node, 1}, program.layers,
                       [&, &out = entry->second](const Op& op, const Issue& issue) { add(op, issue, out); });
      for (int i = 0; i < (pass ? loop->count() : 1); ++i)
        work_.push_back({pass ? loop->first + i : -1, &entry->second});
    }
    for (Wait& wait : waits_) wait.exchange = exchanges_.contains(wait.name);
    done_.assign(places_.size(), {});
    received_.assign(stages_ * kDirections, 0);
  }

  /// Walks on as far as possible. False if it cannot move: it waits for a message that is not sent yet, or is at its
  /// end.
  bool advance(Messages& messages) {
    const std::size_t from = at_, from_op = op_;
    for (; at_ < work_.size(); ++at_, op_ = 0)
      for (const std::vector<TimedOp>& ops = *work_[at_].ops; op_ < ops.size(); ++op_)
        if (!walk(ops[op_], work_[at_].microbatch, messages)) return at_ != from || op_ != from_op;
    return at_ != from;
  }
  bool through() const { return at_ == work_.size(); }
  double end_s() const { return clock_.end_s(); }

 private:
  struct Work {
    int microbatch;
    const std::vector<TimedOp>* ops;
  };

  /// Adds the ops of a pass. Each layer takes at least its least time.
  void add_pass(const Body& pass, std::vector<TimedOp>& out) {
    Issue layer;
    std::size_t first = 0;
    const auto end_layer = [&] {
      if (layers_ && layer.layers) add_least(layer.loop_layer, std::span(out).subspan(first));
    };
    for_each_issue(pass, program_.layers, [&](const Op& op, const Issue& issue) {
      if (issue.layers != layer.layers || issue.loop_layer != layer.loop_layer)
        end_layer(), layer = issue, first = out.size();
      add(op, issue, out);
    });
    end_layer();
  }

  /// A slow host may make a layer's pass longer than its ops.
  void add_least(int layer, std::span<TimedOp> ops) const {
    const auto computes = [](const TimedOp& timed) {
      return timed.op->lane == Lane::compute && timed.op->kind != OpKind::host;
    };
    const auto first = std::ranges::find_if(ops, computes);
    if (first == ops.end()) return;
    const auto last = std::find_if(ops.rbegin(), ops.rend(), computes);
    const bool forward = last->op->direction == Direction::forward;
    first->begins_layer = true;
    last->least_s = (forward ? layers_->forward : layers_->backward).at(static_cast<std::size_t>(layer)).path;
  }

  void add(const Op& op, const Issue& issue, std::vector<TimedOp>& out) {
    if (issue.layer >= 0) places_.add_layer(issue.layer);
    TimedOp timed{&op, places_.number(op.name), issue.layer, 0, 0, false, waits_.size(), 0};
    if (op.exchanges_rows()) exchanges_.insert(timed.name);
    for (const Ref& ref : op.waits)
      if (const auto layer = layer_of(ref, issue.loop_layer, program_.layers))
        waits_.push_back({places_.number(ref.name), ref.microbatch_delta, *layer, false});
    timed.behind = waits_.size();
    if (one_communicator_ && of_shard_group(op)) timed.communicator = communicator_of(op.collective.axis);
    const auto at = static_cast<std::size_t>(issue.layer);
    const bool routed = issue.layer >= 0 && at < loads_.own.size();
    const RoutingFloor own = routed ? loads_.own[at] : RoutingFloor{};
    timed.own_s = timed.fullest_s = seconds_.of(op, own).seconds;
    if (routed && at < loads_.fullest.size() && (op.exchanges_rows() || op.action == Action::experts)) {
      timed.fullest_s = std::max(timed.own_s, seconds_.of(op, loads_.fullest[at]).seconds);
      timed.routed = op.action == Action::experts && op.kind == OpKind::segment;
    }
    out.push_back(timed);
  }

  /// Shard groups with the same ranks have the same communicator.
  std::size_t communicator_of(Axis axis) const {
    const auto same = [&](auto of) { return of(axis) == of(Axis::shard); };
    const bool shards = same([&](Axis a) { return mesh_.size(a); }) && same([&](Axis a) { return mesh_.stride(a); });
    return shards ? 1 : 2;
  }

  struct Done {
    double seconds = kNotYet;
    Reach reach;
  };

  const Done& done_of(std::size_t name, int microbatch, int layer) const {
    static const Done kNothing{0, {}};
    const std::size_t place =
        places_.find(name, microbatch, layer, [this](std::size_t at) { return done_[at].seconds != kNotYet; });
    return place == Places::kNone ? kNothing : done_[place];
  }

  /// Earliest end of the compute lane's work since the op that `since` depends on, slowed while `since` is in flight: C
  /// + S + slowdown (F - S), as in bounds.cpp.
  double slowed_s(const Reach& since) const {
    const Computed &from = computed_[static_cast<std::size_t>(since.computed)], &now = computed_.back();
    return from.done_s + (now.busy_s - from.busy_s) +
           slowdown_ * std::max(0.0, since.in_flight_s - (now.still_s - from.still_s));
  }

  /// The same for a message whose end is not awaited: it slows at most the computation since its start.
  double slowed_by_message_s() const {
    if (sent_.computed < 0) return 0;
    const Computed &from = computed_[static_cast<std::size_t>(sent_.computed)], &now = computed_.back();
    const double still = now.still_s - from.still_s, busy = now.busy_s - from.busy_s;
    return from.done_s + busy +
           slowdown_ * std::clamp(sent_.in_flight_s - still, 0.0, (busy - still) / (1 - slowdown_));
  }

  bool walk(const TimedOp& timed, int microbatch, Messages& messages) {
    const Op& op = *timed.op;
    const bool computes = op.lane == Lane::compute;
    double ready = 0, brought = 0;
    Reach reach;
    for (std::size_t w = timed.waits; w < timed.behind; ++w) {
      const Wait& wait = waits_[w];
      if (wait.microbatch_delta != 0 && microbatch + wait.microbatch_delta < 0) continue;
      const Done& before = done_of(wait.name, microbatch + wait.microbatch_delta, wait.layer);
      ready = std::max(ready, before.seconds);
      if (wait.exchange) brought = std::max(brought, before.seconds);
      reach = std::max(reach, before.reach);
      if (computes && before.reach.in_flight_s > 0) ready = std::max(ready, slowed_s(before.reach));
    }
    const double start = clock_.start_s(op.lane, ready, communicator_s_[timed.communicator]);
    if (!computes)
      reach =
          std::max({reach, lane_reach_[static_cast<std::size_t>(op.lane)], communicator_reach_[timed.communicator]});
    double& others = others_s_[op.direction == Direction::forward ? 0 : 1];
    double done = start + timed.own_s;
    if (op.kind == OpKind::send || op.kind == OpKind::receive) {
      const std::size_t other =
          (stage_ + stages_ + static_cast<std::size_t>(op.collective.stages + static_cast<int>(stages_))) % stages_;
      if (op.kind == OpKind::send) {
        messages.send(stage_, other, op.direction, done);
        // Messages of a tied matrix follow other messages on the receiver's lane.
        if (reach.computed >= 0 && reach.in_flight_s == 0 && op.direction != Direction::recompute)
          sent_ = {reach.computed, timed.own_s};
      } else {
        std::size_t& received = received_[other * kDirections + static_cast<std::size_t>(op.direction)];
        const double sent = messages.done_s(other, stage_, op.direction, received);
        if (sent == kNotYet) return false;
        ++received;
        done = std::max(done, sent);
      }
    } else if (op.exchanges_rows()) {
      done = std::max(start, others) + timed.fullest_s;
      others = 0;
    } else if (timed.routed && (brought > 0 || others > 0)) {
      others = std::max(others, brought) + timed.fullest_s;
    }
    if (timed.begins_layer) layer_s_ = start;
    if (timed.least_s > 0) done = std::max(done, layer_s_ + timed.least_s);
    if (computes) {
      const Computed before = computed_.empty() ? Computed{} : computed_.back();
      computed_.push_back(
          {done, before.busy_s + timed.own_s, before.still_s + (op.collective_kind() ? timed.own_s : 0)});
      done = computed_.back().done_s = std::max(done, slowed_by_message_s());
      reach = {static_cast<int>(computed_.size()) - 1, 0};
    } else if (reach.computed >= 0) {
      reach.in_flight_s += op.collective_kind() ? timed.fullest_s : 0;
    }
    clock_.end(op.lane, done);
    lane_reach_[static_cast<std::size_t>(op.lane)] = reach;
    if (timed.communicator != kOwn)
      communicator_s_[timed.communicator] = done, communicator_reach_[timed.communicator] = reach;
    done_[places_.at(timed.name, microbatch, timed.layer)] = {done, reach};
    return true;
  }

  const Program& program_;
  const LayerLoads& loads_;
  const LayerSeconds* layers_;
  double slowdown_;
  bool one_communicator_;
  Mesh mesh_;
  OpSeconds seconds_;
  Places places_;
  std::size_t stage_, stages_;
  std::set<std::size_t> exchanges_;                              ///< names of ops that exchange rows
  std::unordered_map<const void*, std::vector<TimedOp>> timed_;  ///< by body or node
  std::vector<Wait> waits_;
  std::vector<Work> work_;
  std::size_t at_ = 0, op_ = 0;  ///< position of the walk
  std::vector<Done> done_;       ///< by place
  std::vector<Computed> computed_;
  /// The last message sent. It leaves once the compute lane has made it, or after a message before it.
  Reach sent_;
  std::vector<std::size_t> received_;
  LaneClock clock_;
  std::array<double, 3> communicator_s_{};
  std::array<Reach, kLanes> lane_reach_{};  ///< of the last op on each lane
  std::array<Reach, 3> communicator_reach_{};
  /// When the expert group's fullest rank has computed the rows of the last exchange: forward, and backward.
  std::array<double, 2> others_s_{};
  double layer_s_ = 0;  ///< when the layer began
};

}  // namespace

double pipeline_path_s(const std::vector<Program>& programs, const Layout& layout, const ClusterSpec& cluster,
                       const OpCost& cost, const LayerLoads& loads, const LayerSeconds& layers, std::int64_t rank) {
  // In other layouts passes are split, overlap with another pass, or compute with gradients of other layers.
  const bool whole_passes = layout.pipeline > 1 && layout.schedule == Schedule::one_f_one_b && !layout.exchange_overlap;
  const std::size_t stages = programs.size();
  std::vector<StageWalk> walks;
  walks.reserve(stages);
  for (std::size_t s = 0; s < stages; ++s)
    walks.emplace_back(programs[s], layout, cluster, cost, loads, whole_passes ? &layers : nullptr, rank, s);
  Messages messages(stages);
  for (bool moved = true; moved;) {
    moved = false;
    for (StageWalk& walk : walks) moved = walk.advance(messages) || moved;
  }
  double end = 0;
  for (const StageWalk& walk : walks) {
    if (!walk.through())
      throw_runtime("estimate: a pipeline of {} stages waits for a message that nobody sends", stages);
    end = std::max(end, walk.end_s());
  }
  return end;
}

}  // namespace wt
