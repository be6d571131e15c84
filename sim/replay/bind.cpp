#include "sim/replay/bind.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>

#include "configs/base/error.hpp"
#include "sim/replay/host_launches.hpp"

namespace wt {
namespace {

class Binder {
 public:
  Binder(const UnboundStep& step, const Representatives& ranks, const std::vector<NodeHealth>& health)
      : set_(step.programs),
        layout_(step.layout),
        cluster_(step.cluster),
        cost_(step.cost),
        off_by_(step.off_by),
        mesh_(layout_),
        health_(health),
        crowding_(cluster_.shared_cores() ? cost_.traits().crowding_of(layout_.world()) : 1),
        traffic_(cluster_, layout_, ranks, health),
        one_a_stage_(ranks.one_a_stage) {
    bound_ = std::make_unique<BoundStep>();
    const Program& any = set_.programs.at(0);
    bound_->routing = std::make_unique<RoutingTable>(step.routing, layout_, any.layers, any.microbatches, step.number,
                                                     expert_groups(ranks));
    bound_->ranks = ranks.ranks;
    for (std::size_t kind = 0; kind <= cluster_.others.size(); ++kind) segments_.emplace_back(cost_.on(kind));
  }

  std::unique_ptr<BoundStep> run() {
    const bool shared = !cost_.traits().separate_reduce_group && !cost_.traits().synchronous_host;
    for (const Program& program : set_.programs) bound_->programs.emplace_back(program, shared ? &mesh_ : nullptr);
    StepTasks& tasks = bound_->tasks;
    tasks.capacity = traffic_.capacity();
    tasks.cores = traffic_.cores();
    tasks.synchronous_host = cost_.traits().synchronous_host;
    tasks.compute_on_pool = cluster_.shared_cores();
    bound_->slowdown = cost_.traits().communication_slowdown;
    tasks.slowdown = bound_->slowdown.share;
    tasks.ranks.resize(bound_->ranks.size());
    bound_->different_evidence.emplace_back();
    bound_->evidence_of_op.resize(bound_->ranks.size());
    for (std::size_t r = 0; r < bound_->ranks.size(); ++r) bind_rank(static_cast<int>(r));
    bound_->evidence_of_collective.resize(tasks.collectives.size());
    for (std::size_t c = 0; c < tasks.collectives.size(); ++c) time_collective(static_cast<int>(c));
    if (!cost_.traits().synchronous_host) {
      HostLaunches launches(cost_, layout_, [this](int collective) { return alone_s(collective); });
      for (RankTasks& rank : tasks.ranks) launches.add_to(rank);
    }
    return std::move(bound_);
  }

 private:
  struct Pending {
    const Op* op = nullptr;
    int group = 0;  ///< index into groups_
    int microbatch = -1, layer = -1;
  };

  /// The load of an exchange, and the inputs from which it was made.
  struct Exchange {
    int load;
    const std::vector<double>* sends;  ///< of the routing table
    std::vector<const Op*> ops;
    std::vector<double> bytes;
  };

  std::vector<std::int64_t> expert_groups(const Representatives& ranks) const {
    std::set<std::int64_t> groups;  // groups of different tensor ranks and stages route the same tokens
    for (std::int64_t rank : ranks.ranks) groups.insert(layout_.row_rank(rank) / layout_.expert);
    return {groups.begin(), groups.end()};
  }

  int group_of(Axis axis, std::int64_t rank) {
    const auto key = std::make_pair(axis, mesh_.group_index(axis, rank));
    const auto [it, fresh] = group_index_.try_emplace(key, static_cast<int>(groups_.size()));
    if (fresh) add_group(traffic_.group(axis, key.second));
    return it->second;
  }

  /// The channel between two ranks in one direction. Activations and gradients have separate ones.
  int channel_of(const Op& op, std::int64_t rank) {
    const std::int64_t other = mesh_.neighbour(op.collective.axis, rank, op.collective.stages);
    const bool sends = op.kind == OpKind::send;
    const auto key = std::make_tuple(sends ? rank : other, sends ? other : rank, op.direction);
    const auto [it, fresh] = channel_index_.try_emplace(key, static_cast<int>(groups_.size()));
    if (fresh) add_group(traffic_.channel(std::get<0>(key), std::get<1>(key)));
    return it->second;
  }

  void add_group(GroupInstance group) {
    std::set<std::size_t> kinds{kind_of(group.members.front())};
    if (!cluster_.others.empty())
      for (const std::int64_t member : group.members) kinds.insert(kind_of(member));
    kinds_.emplace_back(kinds.begin(), kinds.end());
    groups_.push_back(std::move(group));
    loads_.emplace_back().fill(-1);
    instances_.emplace_back();
    const auto& members = groups_.back().members;
    present_.push_back(std::ranges::count_if(
        members, [&](std::int64_t member) { return std::ranges::binary_search(bound_->ranks, member); }));
  }

  std::size_t kind_of(std::int64_t rank) const { return cluster_.kind_of(cluster_.node_of(rank)); }

  double compute_speed(std::int64_t rank) const {
    double speed = 1;
    for (const NodeHealth& entry : health_)
      if (entry.node == cluster_.node_of(rank)) speed *= entry.compute;
    return speed;
  }

  void bind_rank(int r) {
    const std::size_t index = static_cast<std::size_t>(r);
    const std::int64_t rank = bound_->ranks[index];
    const RankProgram& program =
        bound_->programs[static_cast<std::size_t>(set_.class_of_rank[static_cast<std::size_t>(rank)])];
    RankTasks& tasks = bound_->tasks.ranks[index];
    const std::size_t n = static_cast<std::size_t>(program.size());
    tasks.program = &program;
    tasks.seconds.assign(n, 0.0);
    tasks.collective.assign(n, -1);
    bound_->evidence_of_op[index].assign(n, 0);
    std::array<int, kAxes> group;  // groups of this rank by axis
    group.fill(-1);
    std::array<std::size_t, kAxes> sequence{};
    std::map<int, std::size_t> messages;  // messages so far, by channel
    const double speed = compute_speed(rank);
    const std::size_t kind = kind_of(rank);
    BoundSegments& segments = segments_[kind];
    for (int i = 0; i < program.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(i);
      const OpInstance& instance = program.ops[at];
      if (between_two(*instance.op)) {
        const int channel = channel_of(*instance.op, rank);
        tasks.collective[at] = join(channel, messages[channel]++, r, i);
      } else if (program.collective(i)) {
        const std::size_t axis = static_cast<std::size_t>(instance.op->collective.axis);
        if (group[axis] < 0) group[axis] = group_of(instance.op->collective.axis, rank);
        tasks.collective[at] = join(group[axis], sequence[axis]++, r, i);
      } else if (instance.op->kind != OpKind::host) {
        BoundSegment& found = segments.of(*instance.op, {bound_->rows(index, at), groups_of(instance, rank)});
        tasks.seconds[at] = found.estimate.seconds * crowding_ / speed;
        bound_->evidence_of_op[index][at] = evidence_of(found, kind);
      }
    }
  }

  int evidence_of(BoundSegment& found, std::size_t kind) {
    if (found.estimate.seconds <= 0) return 0;
    if (found.evidence < 0) {
      TimeEstimate estimate = found.estimate;
      on_kind(off_by_, kind).widen(estimate);
      found.evidence = static_cast<int>(bound_->different_evidence.size());
      bound_->different_evidence.push_back(
          {estimate.low_s / estimate.seconds, estimate.high_s / estimate.seconds, estimate.shares()});
    }
    return found.evidence;
  }

  /// Rows by expert, for the experts' products. A split backward pass computes weight gradients elsewhere, without
  /// padding of rows.
  std::span<const double> groups_of(const OpInstance& instance, std::int64_t rank) const {
    if (instance.op->action != Action::experts) return {};
    const auto groups = bound_->routing->by_expert(instance.microbatch, instance.layer, rank);
    for (const WorkItem& item : instance.op->work)
      if (item.kernel == Kernel::grouped_gemm && item.dims[2] != static_cast<std::int64_t>(groups.size()))
        throw_runtime("simulation: {} has {} experts on rank {}, its routing {}", instance.id(), item.dims[2], rank,
                      groups.size());
    return groups;
  }

  int join(int group, std::size_t sequence, int r, int i) {
    auto& instances = instances_[static_cast<std::size_t>(group)];
    const OpInstance& instance =
        bound_->tasks.ranks[static_cast<std::size_t>(r)].program->ops[static_cast<std::size_t>(i)];
    if (sequence == instances.size()) {
      instances.push_back(static_cast<int>(bound_->tasks.collectives.size()));
      const std::int64_t members = present_[static_cast<std::size_t>(group)];
      bound_->tasks.collectives.emplace_back().members.reserve(static_cast<std::size_t>(members));
      pending_.push_back({instance.op, group, instance.microbatch, instance.layer});
    }
    const int c = instances[sequence];
    const Pending& first = pending_[static_cast<std::size_t>(c)];
    const bool both = between_two(*first.op) && first.op->collective.bytes.fixed == instance.op->collective.bytes.fixed;
    if (!both && (first.op->kind != instance.op->kind || first.op->action != instance.op->action))
      throw_usage(
          "step program: call {} of rank {} on axis {} is {}, another member's is {}; make the rank classes issue the "
          "same collectives in the same order",
          sequence, bound_->ranks[static_cast<std::size_t>(r)], to_string(instance.op->collective.axis), instance.id(),
          first.op->name);
    bound_->tasks.collectives[static_cast<std::size_t>(c)].members.emplace_back(r, i);
    return c;
  }

  void time_collective(int c) {
    CollectiveTask& task = bound_->tasks.collectives[static_cast<std::size_t>(c)];
    const Pending& pending = pending_[static_cast<std::size_t>(c)];
    const GroupInstance& group = groups_[static_cast<std::size_t>(pending.group)];
    const Op& op = *pending.op;
    if (static_cast<std::int64_t>(task.members.size()) != present_[static_cast<std::size_t>(pending.group)])
      throw_usage("step program: {} over axis {} is issued by {} of {} ranks; every rank of a group must issue it",
                  op.name, to_string(group.axis), task.members.size(),
                  present_[static_cast<std::size_t>(pending.group)]);
    if (group.size == 1) return;
    std::vector<double>& bytes = bytes_;
    std::vector<const Op*>& ops = ops_;  // by member, as classes may send different amounts
    bytes.clear(), ops.clear();
    for (const auto& [r, i] : task.members) {
      const std::size_t rank = static_cast<std::size_t>(r), at = static_cast<std::size_t>(i);
      ops.push_back(bound_->tasks.ranks[rank].program->ops[at].op);
      bytes.push_back(ops.back()->collective.bytes.at(bound_->rows(rank, at)));
    }
    if (one_a_stage_ && op.kind == OpKind::all_to_all) {  // the simulated rank's twins send equally much
      bytes.resize(static_cast<std::size_t>(group.size), bytes.front());
      ops.resize(bytes.size(), ops.front());
    }
    const OpKind kind = between_two(op) ? OpKind::send : op.kind;
    if (cluster_.shared_cores()) {
      CollectiveEstimate estimate = cost_.collective(kind, *std::ranges::max_element(bytes), group.size, group.nodes);
      on_kind(off_by_, 0).widen(estimate);
      const double preparation_s = preparation(op, 0);
      task.latency_s = estimate.latency_s;
      for (double b : bytes)
        task.cpu_s.push_back(cost_.collective(kind, b, group.size, group.nodes).cpu_s + crowding_ * preparation_s);
      set_evidence(c, estimate, std::nullopt);
      return;
    }
    if (op.kind == OpKind::all_to_all) task.load = exchange_load(pending, ops, bytes);
    const double largest = *std::ranges::max_element(bytes);
    const std::vector<std::size_t>& kinds = kinds_[static_cast<std::size_t>(pending.group)];
    std::optional<CollectiveEstimate> slowest;
    std::size_t slowest_kind = 0;
    double slowest_s_per_byte = 0;
    const auto estimate_on = [&](std::size_t each) {
      return cost_.on(each).collective(kind, largest, group.size, group.nodes);
    };
    for (const std::size_t each : kinds) {
      const CollectiveEstimate estimate = estimate_on(each);
      const double s_per_byte =
          kinds.size() == 1 ? 0 : wire_s_per_byte(each, kind, estimate, group) / estimate.efficiency;
      if (!slowest || s_per_byte > slowest_s_per_byte)
        slowest = estimate, slowest_kind = each, slowest_s_per_byte = s_per_byte;
      task.latency_s = std::max(task.latency_s, estimate.latency_s + preparation(op, each));
    }
    CollectiveEstimate estimate = *slowest;
    on_kind(off_by_, slowest_kind).widen(estimate);
    if (op.exchanges_rows())
      estimate = cost_.row_exchange(estimate, layout_.dispatcher, op.collective.row_bytes, group.nodes);
    if (task.load < 0) {
      task.load = group_load(pending.group, kind, estimate.algorithm);
      task.scale = ring_bytes(kind, largest, group.size) / estimate.efficiency;
    } else {
      task.scale = bound_->tasks.loads[static_cast<std::size_t>(task.load)].pools.empty() ? 0 : 1 / estimate.efficiency;
    }
    if (kinds.size() > 1) {
      std::vector<double> over_slowest(cluster_.others.size() + 1, 1.0);
      for (const std::size_t each : kinds) over_slowest[each] = slowest->efficiency / estimate_on(each).efficiency;
      PoolLoad& load = bound_->tasks.loads[static_cast<std::size_t>(task.load)];
      if (op.kind == OpKind::all_to_all)
        load = traffic_.by_kind(std::move(load), over_slowest);
      else
        task.load = by_kind(task.load, over_slowest);
    }
    set_evidence(c, estimate, kind == OpKind::all_reduce ? std::optional(estimate.algorithm) : std::nullopt);
  }

  /// Seconds per byte at nominal rates on nodes of that kind; an all-reduce uses the estimate's algorithm.
  double wire_s_per_byte(std::size_t kind, OpKind op_kind, const CollectiveEstimate& estimate,
                         const GroupInstance& group) const {
    const NodeSpec& node = cluster_.of_kind(kind);
    const double nic_Bps = cluster_.nic_per_gpu_Bps(node);
    if (op_kind == OpKind::all_reduce)
      return all_reduce_wire_s(estimate.algorithm, {node.nvswitch_Bps, nic_Bps}, group.size, group.nodes);
    return 1 / (group.nodes > 1 ? nic_Bps : node.nvswitch_Bps);
  }

  int group_load(int group, OpKind kind, AllReduce algorithm) {
    const GroupInstance& instance = groups_[static_cast<std::size_t>(group)];
    const bool reduces = kind == OpKind::all_reduce;
    int& load =
        loads_[static_cast<std::size_t>(group)][reduces ? static_cast<std::size_t>(algorithm) : kAllReduces.size()];
    if (load < 0) {
      load = static_cast<int>(bound_->tasks.loads.size());
      bound_->tasks.loads.push_back(reduces ? traffic_.all_reduce(instance, algorithm) : instance.ring);
    }
    return load;
  }

  /// The load scaled by a factor for each kind of node: the additional time of less efficient kinds.
  int by_kind(int load, const std::vector<double>& factors) {
    if (std::ranges::all_of(factors, [](double factor) { return factor == 1; })) return load;
    const auto [it, fresh] = loads_by_kind_.try_emplace({load, factors}, static_cast<int>(bound_->tasks.loads.size()));
    if (fresh)
      bound_->tasks.loads.push_back(traffic_.by_kind(bound_->tasks.loads[static_cast<std::size_t>(load)], factors));
    return it->second;
  }

  double alone_s(int collective) const {
    if (collective < 0) return 0;
    const CollectiveTask& task = bound_->tasks.collectives[static_cast<std::size_t>(collective)];
    return task.latency_s +
           (task.load < 0 ? 0
                          : task.scale * traffic_.alone_s(bound_->tasks.loads[static_cast<std::size_t>(task.load)]));
  }

  /// Layers and microbatches with equal routing have equal exchanges, which share one load. With several kinds of
  /// nodes, each exchange is scaled separately.
  int exchange_load(const Pending& pending, const std::vector<const Op*>& ops, const std::vector<double>& bytes) {
    const GroupInstance& group = groups_[static_cast<std::size_t>(pending.group)];
    if (static_cast<std::int64_t>(bytes.size()) != group.size)
      throw_runtime("simulation: {} over axis {} has members that are not simulated; switch folding off",
                    pending.op->name, to_string(group.axis));
    const bool bound = group.axis == Axis::expert && pending.layer >= 0;
    static const std::vector<double> kEven;
    const auto& sends = bound ? bound_->routing->sends(pending.microbatch, pending.layer, group.members[0]) : kEven;
    std::vector<Exchange>& known = exchanges_[{pending.group, pending.op}];
    const bool shared = cluster_.others.empty();
    const auto same = std::ranges::find_if(known, [&](const Exchange& e) {
      return (e.sends == &sends || *e.sends == sends) && e.bytes == bytes && e.ops == ops;
    });
    if (same != known.end()) return same->load;
    const int load = static_cast<int>(bound_->tasks.loads.size());
    bound_->tasks.loads.push_back(
        traffic_.all_to_all(group, exchange_bytes(ops, sends, bytes), pending.op->collective.rows_of_token));
    if (shared) known.push_back({load, &sends, ops, bytes});
    return load;
  }

  void set_evidence(int c, const CollectiveEstimate& estimate, std::optional<AllReduce> algorithm) {
    bound_->evidence_of_collective[static_cast<std::size_t>(c)] = {
        1 / (1 + estimate.relative_spread), 1 + estimate.relative_spread,
        only(estimate.root.value_or(estimate.evidence)), algorithm};
  }

  /// Seconds of a collective's own work items, such as the cast of a shard before its gather.
  double preparation(const Op& op, std::size_t kind) {
    double sum = 0;
    for (const WorkItem& item : op.work) {
      const auto [it, fresh] = items_.try_emplace({&item, kind}, 0.0);
      if (fresh) it->second = cost_.on(kind).item(item, 0).seconds;
      sum += it->second;
    }
    return sum;
  }

  static bool between_two(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::receive; }

  const ProgramSet& set_;
  const Layout& layout_;
  const ClusterSpec& cluster_;
  const OpCost& cost_;
  const StepRatiosByKind& off_by_;
  std::vector<BoundSegments> segments_;  ///< by kind of node
  Mesh mesh_;
  const std::vector<NodeHealth>& health_;
  const double crowding_;
  Traffic traffic_;
  const bool one_a_stage_;
  std::unique_ptr<BoundStep> bound_;
  std::map<std::pair<Axis, std::int64_t>, int> group_index_;
  /// By sender, receiver and direction.
  std::map<std::tuple<std::int64_t, std::int64_t, Direction>, int> channel_index_;
  std::vector<GroupInstance> groups_;
  std::vector<std::array<int, kAllReduces.size() + 1>> loads_;  ///< by group: all-reduces by algorithm, then the gather
  std::map<std::pair<int, std::vector<double>>, int> loads_by_kind_;
  std::map<std::pair<int, const Op*>, std::vector<Exchange>> exchanges_;  ///< by group and op
  std::vector<std::int64_t> present_;                                     ///< by group: number of simulated members
  std::vector<std::vector<std::size_t>> kinds_;                           ///< by group: kinds of its members' nodes
  std::vector<std::vector<int>> instances_;                               ///< by group and call number: collective
  std::vector<Pending> pending_;                                          ///< by collective
  std::map<std::pair<const WorkItem*, std::size_t>, double> items_;       ///< by item and kind of node
  std::vector<double> bytes_;                                             ///< scratch, of the collective being bound
  std::vector<const Op*> ops_;
};

}  // namespace

const OpEvidence& BoundStep::evidence(std::size_t rank, std::size_t op) const {
  if (const int c = tasks.ranks[rank].collective[op]; c >= 0)
    return evidence_of_collective[static_cast<std::size_t>(c)];
  return different_evidence[static_cast<std::size_t>(evidence_of_op[rank][op])];
}

double BoundStep::rows(std::size_t rank, std::size_t op) const {
  const RankProgram& program = *tasks.ranks[rank].program;
  const OpInstance& instance = program.ops[op];
  return program.row_dependent[op] ? routing->rows(instance.microbatch, instance.layer, ranks[rank]) : 0;
}

std::vector<double> exchange_bytes(const std::vector<const Op*>& ops, const std::vector<double>& sends,
                                   const std::vector<double>& bytes) {
  const Op& op = *ops.at(0);
  const std::size_t n = bytes.size();
  const bool routed = !sends.empty() && op.exchanges_rows();
  // On the way back a rank returns the rows that it received from the tokens' ranks.
  const bool back = op.collective.bytes.per_row != 0;
  std::vector<double> out(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    if (const auto& known = ops[i]->collective.sent; !known.empty()) {
      std::ranges::copy(known, out.begin() + static_cast<std::ptrdiff_t>(i * n));
      continue;
    }
    const auto share = [&](std::size_t j) { return !routed ? 1.0 : back ? sends[j * n + i] : sends[i * n + j]; };
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += share(j);
    const double kept_row_bytes = routed ? ops[i]->collective.kept_row_bytes : 0;
    const double all = kept_row_bytes > 0 ? kept_row_bytes * sum : bytes[i];
    for (std::size_t j = 0; j < n; ++j) out[i * n + j] = sum > 0 ? all * share(j) / sum : 0;
  }
  return out;
}

std::unique_ptr<BoundStep> bind_step(const UnboundStep& step, const Representatives& ranks,
                                     const std::vector<NodeHealth>& health) {
  return Binder(step, ranks, health).run();
}

}  // namespace wt
