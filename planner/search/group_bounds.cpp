#include "planner/search/group_bounds.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "configs/base/number.hpp"
#include "configs/files/recompute_mask.hpp"
#include "sim/bounds/op_seconds.hpp"
#include "sim/bounds/pipeline_path.hpp"
#include "sim/bounds/schedule_seconds.hpp"
#include "sim/program/compose/expert_copies.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

constexpr double kMostPairs = 20'000;

/// A layout without a pipeline whose ranks compute one microbatch of one layer as the ranks of `layout` do.
Layout without_pipeline(Layout layout, std::int64_t microbatch) {
  layout.pipeline = layout.virtual_stages = 1;
  layout.schedule = Schedule::one_f_one_b;
  layout.chunk_layers.clear();
  layout.exchange_overlap = layout.modules_before_head = false;
  layout.reshard_after_forward = layout.reduce_every_microbatch = true;
  layout.microbatch = microbatch;
  return layout;
}

/// The member whose weights and gradients are sharded least, and copied least between collectives' buffers.
Layout least_sharded(const LayoutGroup& group) {
  Layout out = group.layout;
  out.replicate *= out.shard / group.least_shard;
  out.shard = group.least_shard;
  out.optimizer_shard = 1;
  return out;
}

/// Whether a member of the search may have the allgather dispatcher.
bool may_gather_tokens(const SearchProblem& p) {
  const std::vector<Dispatcher>& all = p.space.dispatchers.empty() ? p.stack.dispatchers : p.space.dispatchers;
  return std::ranges::find(all, Dispatcher::allgather) != all.end();
}

/// Most bytes that an op allocates and temporarily uses, at `rows` rows.
double made_by(const Op& op, double rows) {
  double bytes = 0, moment = 0;
  for (const Buffer& buffer : op.allocates) bytes += buffer.bytes.at(rows);
  for (const Amount& each : op.transient) moment = std::max(moment, each.at(rows));
  return bytes + moment;
}

/// Bytes that each layer's forward pass leaves behind, at `rows` rows of its experts. `head_bytes`: bytes that the head
/// makes.
std::vector<double> saved_bytes(const Program& program, double rows, double& head_bytes) {
  std::vector<double> out(static_cast<std::size_t>(program.layers), 0);
  const auto add_layers = [&](const Loop& loop) {
    std::map<std::string, double> made;
    for (const Op& op : ops_of(loop.body)) {
      if (op.direction != Direction::forward || op.action == Action::unshard) continue;
      for (const Buffer& buffer : op.allocates) made[buffer.name] += buffer.bytes.at(rows);
      for (const Ref& ref : op.frees) made.erase(ref.name);
    }
    made.erase("block.output");  // counted in the next layer, which reads it
    double bytes = 0;
    for (const auto& [name, size] : made) bytes += size;
    for (const int layer : rounds_of(loop)) out.at(static_cast<std::size_t>(layer)) += bytes;
  };
  for_each_op(
      program.nodes,
      [&](const Op& op, const LoopsAround&) {
        if (op.action == Action::head_loss) head_bytes = std::max(head_bytes, made_by(op, rows));
      },
      [&](const Loop& loop) {
        if (loop.index == Loop::Index::layer) add_layers(loop);
        return loop.index == Loop::Index::layer || loop.first == 0;
      });
  return out;
}

/// Number of microbatches by chunk that the first stage holds when its first backward pass ends.
std::vector<std::int64_t> in_flight(const Layout& l, std::int64_t microbatches) {
  const std::int64_t p = l.pipeline, v = l.virtual_stages, all = microbatches * v;
  if (p == 1) return {1};
  if (l.schedule == Schedule::dualpipe_v) return {2 * p - 1, 1};
  std::vector<std::int64_t> out(static_cast<std::size_t>(v), 0);
  for (std::int64_t pass = std::min(all, v > 1 ? 2 * (p - 1) + (v - 1) * p + 1 : p) - 1; pass >= 0; --pass)
    ++out[static_cast<std::size_t>(pass % (p * v) / p)];
  return out;
}

}  // namespace

const GroupBounds::OneMicrobatch& GroupBounds::of(const Layout& layout, std::int64_t microbatch, Exchanges exchanges) {
  const auto [entry, fresh] = known_.try_emplace(key_of_one(layout, microbatch, exchanges));
  OneMicrobatch& one = entry->second;
  if (!fresh) return one;
  if (!layout.recompute.all_layers_alike()) return one = layer_by_layer(layout, microbatch, exchanges);
  const SearchProblem& p = problem_;
  const Layout simple = without_pipeline(layout, microbatch);
  // The same copies of experts in all layers give a single loop over layers. Transfers of copies are not counted here.
  Layout folded = simple;
  for (auto& slots : folded.placement) slots = simple.placement.front();
  // Copies between collectives' buffers and weights: those that every layout sharded like this has in each microbatch.
  Layout least = folded;
  ProgramOptions options = program_options(p, Microbatches(1, microbatch, microbatch));
  const auto may_be_off = [](const std::vector<bool>& of_stack) { return std::ranges::count(of_stack, false) > 0; };
  if (layout.pipeline > 1 || layout.tensor > 1 || may_be_off(p.stack.layouts.reduce_every_microbatch))
    options.memory.collective_copies = CollectiveCopies::none;  // once a step, or never
  else if (may_be_off(p.stack.layouts.reshard_after_forward))
    least.reshard_after_forward = false;  // backward finds the weights of forward
  const ProgramSet set = build_program_set(p.model, least, options);
  const BusiestRank& busiest = busiest_of(layout, simple, exchanges);
  const std::int64_t rank = busiest.rank;
  const std::size_t kind = p.cluster.kind_of(p.cluster.node_of(rank));
  const ClusterSpec cluster = p.cluster.others.empty() ? p.cluster : p.cluster.all_of(kind);
  const OpCost& cost = p.cluster.others.empty() ? p.cost.get() : p.cost.get().on(kind);
  Layout launched = simple;  // the host waits for numbers of rows unless passes overlap
  launched.exchange_overlap = layout.exchange_overlap;
  one.seconds = layer_seconds(set.programs[0], launched, cluster, cost, busiest.loads, rank);
  if (exchanges == Exchanges::counted) return one;
  // If gradients are reduced once a step, the head's gradient has no buffer here; resident() counts it.
  folded.reduce_every_microbatch = false;
  if (layout.expert > 1 && may_gather_tokens(p)) folded.dispatcher = Dispatcher::allgather;  // which keeps fewer rows
  const std::vector<Program> once =
      build_stages(p.model, folded, program_options(p, Microbatches(1, microbatch, microbatch)), 0, 1);
  one.saved_bytes =
      saved_bytes(once.front(), even_rows(p, layout, microbatch) * p99_imbalance(p, layout), one.head_bytes);
  for (const LayerLoads& each : busiest.of_ranks)
    one.of_ranks.push_back(layer_seconds(set.programs[0], simple, cluster, cost, each, rank));
  return one;
}

const GroupBounds::BusiestRank& GroupBounds::busiest_of(const Layout& layout, const Layout& l, Exchanges exchanges) {
  const bool counted = exchanges == Exchanges::counted;
  const auto [entry, fresh] = busiest_.try_emplace(
      {l.tensor, l.whole_experts, l.context, l.expert, l.slots(problem_.model), l.microbatch,
       sequences_of(problem_, layout).each, counted ? static_cast<std::int64_t>(l.dispatcher) : -1});
  BusiestRank& out = entry->second;
  if (!fresh) return out;
  const SearchProblem& p = problem_;
  const RoutingSource& rows = routing(layout);
  out.rank = busiest_rank(p, l, rows) * (l.whole_experts ? 1 : l.tensor);
  // Smaller for the last microbatch. A capacity is a whole number of rows.
  const auto accepted = [&](std::int64_t sequences) {
    return as_double(p.model.router.capacity(sequences * p.seq / l.context * p.model.top_k, p.model.experts));
  };
  const double share = std::min(as_double(l.microbatch) / as_double(layout.microbatch),
                                p.model.router.drops() ? accepted(l.microbatch) / accepted(layout.microbatch) : 1);
  if (!counted) {
    out.loads = own_loads(p.model, l, rows, out.rank).times(share);
    if (counts_computing())
      for (const LayerLoads& each : group_loads(p.model, l, rows)) out.of_ranks.push_back(each.times(share));
    return out;
  }
  const std::size_t kind = p.cluster.kind_of(p.cluster.node_of(out.rank));
  out.loads = layer_loads(p.model, l, p.cluster.others.empty() ? p.cluster : p.cluster.all_of(kind), rows, out.rank)
                  .times(share);
  return out;
}

const GroupBounds::BusiestRank& GroupBounds::busiest_of(const Layout& member) {
  return busiest_of(member, without_pipeline(member, member.microbatch), Exchanges::counted);
}

const RoutingSource& GroupBounds::routing(const Layout& l) {
  const Microbatches n = sequences_of(problem_, l);
  std::unique_ptr<RoutingSource>& known = routings_[{n.count, n.each, n.last, l.context, l.expert}];
  if (!known) known = routing_of(problem_, l);
  return *known;
}

GroupBounds::OneMicrobatch GroupBounds::layer_by_layer(const Layout& layout, std::int64_t microbatch,
                                                       Exchanges exchanges) {
  const std::int64_t layers = problem_.model.layers;
  std::map<std::int64_t, const OneMicrobatch*> alike;  // by what the layer recomputes
  const auto of_layer = [&](std::int64_t layer) -> const OneMicrobatch& {
    const LayerRecompute again = layout.recompute.of(layer, layers, chunks_of(layout));
    const auto [entry, fresh] = alike.try_emplace(mask_of(again), nullptr);
    if (!fresh) return *entry->second;
    Layout everywhere = layout;
    everywhere.recompute = recompute_of_mask(mask_of(again));
    if (again.recomputes_attention()) everywhere.recompute.compression = layout.recompute.compression;
    return *(entry->second = &of(everywhere, microbatch, exchanges));
  };
  OneMicrobatch out = of_layer(0);
  for (std::size_t layer = 1; layer < out.seconds.forward.size(); ++layer) {
    const OneMicrobatch& one = of_layer(static_cast<std::int64_t>(layer));
    const auto take = [&](LayerSeconds& to, const LayerSeconds& from) {
      to.forward[layer] = from.forward[layer], to.backward[layer] = from.backward[layer];
    };
    take(out.seconds, one.seconds);
    for (std::size_t rank = 0; rank < out.of_ranks.size(); ++rank) take(out.of_ranks[rank], one.of_ranks[rank]);
    if (!out.saved_bytes.empty()) out.saved_bytes[layer] = one.saved_bytes[layer];
  }
  return out;
}

GroupBounds::Key GroupBounds::key_of_one(const Layout& l, std::int64_t microbatch, Exchanges exchanges) {
  auto policy = std::ranges::find(policies_, l.recompute);
  if (policy == policies_.end()) policy = policies_.insert(policies_.end(), l.recompute);
  const bool copies = problem_.stack.memory.collective_copies != CollectiveCopies::none;
  return {
      l.tensor,
      l.sequence_parallel,
      l.whole_experts,
      l.context,
      l.context_ring,
      l.expert,
      l.slots(problem_.model),  // placements with copies differ in their number of slots
      microbatch,
      exchanges == Exchanges::counted ? 2 * static_cast<std::int64_t>(l.dispatcher) + (l.exchange_overlap ? 1 : 0) : -1,
      policy - policies_.begin(),
      l.recompute.counts_in_chunks() ? l.pipeline : 1,  // these policies count blocks per chunk
      copies && l.pipeline > 1,
      copies && l.pipeline == 1 ? (l.shard > 1 ? 1 : 0) + (l.expert_shard() > 1 ? 2 : 0) : 0,
      l.recompute.counts_in_chunks() ? l.virtual_stages : 1,
      l.recompute.counts_in_chunks() ? static_cast<std::int64_t>(l.schedule) : 0,
      static_cast<std::int64_t>(l.cuda_graphs),
      sequences_of(problem_, l).each};  // trained loads depend on the number of tokens
}

double GroupBounds::step_s(const LayoutGroup& group) { return summed_s(least_sharded(group), Exchanges::left_out); }

double GroupBounds::summed_s(const Layout& given, Exchanges exchanges) {
  if (given.pipeline > 1 && !problem_.cluster.others.empty()) return 0;  // stages may be on nodes of other kinds
  Layout layout = given;
  if (exchanges == Exchanges::left_out) layout.exchange_overlap = false;  // no exchanges here
  const Microbatches all = sequences_of(problem_, layout);
  const std::vector<std::int64_t>& chunks = chunks_of(layout);
  const auto least = [&](std::int64_t size, std::int64_t count) {
    return least_step_s(of(layout, size, exchanges).seconds, layout, chunks, count);
  };
  return (all.even() ? least(all.each, all.count) : least(all.each, all.count - 1) + least(all.last, 1)) +
         problem_.cost.get().traits().once_a_step.seconds;
}

bool GroupBounds::counts_computing() const {
  const ClusterSpec& cluster = problem_.cluster;
  return problem_.objective && problem_.objective->counts_computing() && cluster.others.empty() &&
         !cluster.shared_cores();
}

double GroupBounds::computing_s(const LayoutGroup& group) {
  if (!counts_computing()) return 0;
  const Layout layout = least_sharded(group);
  const Microbatches all = sequences_of(problem_, layout);
  const OneMicrobatch &each = of(layout, all.each, Exchanges::left_out),
                      &last = all.even() ? each : of(layout, all.last, Exchanges::left_out);
  const auto chunks = [&](const LayerSeconds& rank) { return chunk_seconds(rank, layout, chunks_of(layout)); };
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t rank = 0; rank < each.of_ranks.size(); ++rank) {
    const std::vector<ChunkSeconds> usual = chunks(each.of_ranks[rank]), smaller = chunks(last.of_ranks[rank]);
    std::vector<double> stages(static_cast<std::size_t>(layout.pipeline), 0);
    for (std::size_t c = 0; c < usual.size(); ++c)
      stages[static_cast<std::size_t>(layout.stage_of(static_cast<std::int64_t>(c)))] +=
          as_double(all.count - 1) * (usual[c].forward.compute + usual[c].backward.compute) +
          smaller[c].forward.compute + smaller[c].backward.compute;
    least = std::min(least, std::ranges::min(stages));
  }
  return least;
}

double GroupBounds::scheduled_s(const Layout& layout) {
  // Ranks with shared cores, or in groups over several kinds of nodes, wait for other ranks than the fullest, too.
  if (problem_.cluster.shared_cores() || !problem_.cluster.others.empty()) return summed_s(layout, Exchanges::left_out);
  if (layout.pipeline == 1 || layout.schedule != Schedule::one_f_one_b) return summed_s(layout, Exchanges::counted);
  const double bytes = 2 * as_double(layout.microbatch * problem_.seq / layout.context * problem_.model.d_model) /
                       as_double(layout.sequence_parallel ? layout.tensor : 1);
  return scheduled_step_s(of(layout, layout.microbatch, Exchanges::counted).seconds, layout, chunks_of(layout),
                          sequences_of(problem_, layout).count,
                          least_message_s(problem_.cluster, problem_.cost, bytes, layout.stage_ranks())) +
         problem_.cost.get().traits().once_a_step.seconds;
}

double GroupBounds::scheduled_s(const LayoutGroup& group) {
  double least = std::numeric_limits<double>::infinity();
  Layout member = least_sharded(group);
  for (const Exchange& each : group.exchanges) {
    member.dispatcher = each.dispatcher, member.exchange_overlap = each.overlap, member.cuda_graphs = each.graphs;
    least = std::min(least, scheduled_s(member));
  }
  return least;
}

bool GroupBounds::uniform(const Layout& layout) const {
  const SearchProblem& p = problem_;
  return !p.cluster.shared_cores() && p.cluster.others.empty() && !p.cost.get().traits().synchronous_host &&
         sequences_of(p, layout).even() && !has_copies(p.model, layout);
}

double GroupBounds::lane_s(const Layout& member) {
  if (member.pipeline > 1) return 0;
  const SearchProblem& p = problem_;
  if (!uniform(member)) return lane_bound(p, member, routing(member));
  const BusiestRank& busiest = busiest_of(member);
  const ProgramOptions options = program_options(p, member);
  const RoutingFloor floor = busiest.loads.own.empty() ? RoutingFloor{} : lowest(busiest.loads.own);
  const std::vector<RoutingFloor> floors(static_cast<std::size_t>(options.microbatches), floor);
  return bound0(build_stages(p.model, member, options, 0, 1).front(), member, p.cluster, p.cost, floors, busiest.rank) +
         p.cost.get().traits().once_a_step.seconds;
}

double GroupBounds::path_s(const Layout& member) {
  const SearchProblem& p = problem_;
  const bool staged = member.pipeline > 1;
  if (!uniform(member)) return staged ? 0 : path_bound(p, member, routing(member));
  const BusiestRank& busiest = busiest_of(member);
  const Layout layout = with_stack_chunks(p, member);
  const std::vector<Program> programs = build_stages(p.model, layout, program_options(p, layout), 0, layout.pipeline);
  const double walked_s = pipeline_path_s(programs, layout, p.cluster, p.cost, busiest.loads,
                                          of(member, member.microbatch, Exchanges::counted).seconds, busiest.rank) +
                          p.cost.get().traits().once_a_step.seconds;
  // path_bound() is sharper if it binds all times, because it includes hosts and fullest links. But it visits each pair
  // of ranks that exchange rows. With many pairs that takes as long as a simulation.
  const double pairs = as_double(member.expert * member.expert * p.model.blocks() * sequences_of(p, member).count);
  return staged || pairs > kMostPairs ? walked_s : std::max(walked_s, path_bound(p, member, routing(member)));
}

const LiveMemory& GroupBounds::resident(const Layout& l, std::int64_t stage) {
  const auto [entry, fresh] = resident_.try_emplace(
      {l.tensor, l.sequence_parallel, l.whole_experts, l.context, l.context_ring, l.expert, l.slots(problem_.model),
       l.pipeline, l.virtual_stages, static_cast<std::int64_t>(l.schedule), l.shard, l.optimizer_shard, l.replicate,
       l.reshard_after_forward * 2 + l.reduce_every_microbatch, stage,
       problem_.stack.memory.late_reuse ? l.microbatch : 0});
  LiveMemory& out = entry->second;
  if (!fresh) return out;
  const SearchProblem& p = problem_;
  for (const Buffer& buffer : resident_buffers(p.model, with_stack_chunks(p, l), program_options(p, l), stage))
    (buffer.comes_and_goes ? out.dynamic : out.kept) += buffer.bytes.at(0);
  return out;
}

LiveMemory GroupBounds::live_on(const Layout& l, std::int64_t microbatches, std::int64_t stage) {
  const OneMicrobatch& one = of(l, l.microbatch, Exchanges::left_out);
  const std::vector<std::int64_t>& chunks = chunks_of(l);
  const std::vector<std::int64_t> held = in_flight(l, microbatches);
  const bool heads = stage == l.stage_of(std::ssize(chunks) - 1);
  double full = 0, at_head = heads ? one.head_bytes : 0;  // before the first backward pass; at the first head
  std::size_t layer = 0, own = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); layer += static_cast<std::size_t>(chunks[chunk++])) {
    if (l.stage_of(static_cast<std::int64_t>(chunk)) != stage) continue;
    for (std::size_t i = layer; i < layer + static_cast<std::size_t>(chunks[chunk]); ++i) {
      full += one.saved_bytes[i] * as_double(stage == 0 ? held.at(own) : 1);
      at_head += one.saved_bytes[i];
    }
    ++own;
  }
  LiveMemory live = resident(l, stage);
  live.dynamic += std::max(full, at_head);
  return live;
}

double GroupBounds::memory_bytes(const LayoutGroup& group) {
  const std::int64_t head = group.layout.stage_of(std::ssize(chunks_of(group.layout)) - 1);
  double least = std::numeric_limits<double>::infinity();
  for (const Layout& member : space_.narrowest(group)) {
    double most = 0;
    for (const std::int64_t stage : std::set{std::int64_t{0}, head}) {
      const LiveMemory live = live_on(member, group.microbatches, stage);
      const MemoryForecast process = problem_.memory ? problem_.memory->process(live, 0) : as_live(live);
      most = std::max(most, process.quantile(1 - problem_.space.memory_risk));
    }
    least = std::min(least, most);
  }
  return least;
}

}  // namespace wt
