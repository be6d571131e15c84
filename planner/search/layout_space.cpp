#include "planner/search/layout_space.hpp"

#include <algorithm>
#include <tuple>

#include "configs/base/error.hpp"
#include "configs/files/layout_words.hpp"

namespace wt {
namespace {

constexpr std::int64_t kEnds = 2;         ///< embedding and output projection; each may replace a layer
constexpr std::int64_t kMostMissing = 3;  ///< layers that the first and last chunk may lack: 61 layers are split like
                                          ///< 64
/// Policies recompute one to three quarters of a chunk, or every n-th layer, n <= kParts.
constexpr std::int64_t kParts = 4;

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

/// The values that the study names, else `usual`; sorted, without repeats.
std::vector<std::int64_t> choices(std::vector<std::int64_t> wanted, std::vector<std::int64_t> usual) {
  if (wanted.empty()) return usual;
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

template <typename T>
std::vector<T> choices(const std::vector<T>& wanted, const std::vector<T>& usual) {
  std::vector<T> out;
  for (const T& value : wanted.empty() ? usual : wanted)
    if (std::ranges::find(out, value) == out.end()) out.push_back(value);
  return out;
}

/// Sizes of microbatches. For each number of microbatches the smallest size, so that the last microbatch is as full as
/// possible.
std::vector<std::int64_t> microbatch_sizes(std::int64_t sequences, bool smaller_last) {
  if (!smaller_last) return divisors(sequences);
  std::vector<std::int64_t> out;
  for (std::int64_t size = 1; size <= sequences; ++size) {
    const std::int64_t count = Microbatches::split(sequences, size).count;
    if (size == 1 || Microbatches::split(sequences, size - 1).count != count) out.push_back(size);
  }
  return out;
}

/// The stack's policies. Those that keep inputs of blocks come also with each compression of the stack.
std::vector<Recompute> policies(const StackLayouts& stack) {
  std::vector<Recompute> out = stack.recompute;
  for (const Recompute& policy : stack.recompute)
    for (const Compression compression : stack.compression)
      if (policy.has(Module::block) && !policy.has(Module::products)) {
        out.push_back(policy);
        out.back().compression = compression;
      }
  return out;
}

/// Checks each value that the study names, in a layout with this value alone.
void check_asked(const SearchProblem& p) {
  const StackLayouts& stack = p.stack.layouts;
  const auto check = [&](const auto& values, const auto& set) {
    for (const auto& value : values) {
      Layout one;
      one.reshard_after_forward = stack.reshard_after_forward.front();
      one.reduce_every_microbatch = stack.reduce_every_microbatch.front();
      set(one, value);
      stack.check(one, p.stack.name);
      p.stack.check_layout(one);
    }
  };
  const SearchSpec& s = p.space;
  const Schedule usual = stack.schedules.empty() ? Schedule::one_f_one_b : stack.schedules.front();
  const bool parallel = p.model.attention.parallel != AttentionSpec::Parallel::none;  // no norms to split
  check(s.tensor_degrees,
        [&](Layout& l, std::int64_t v) { l.tensor = v, l.sequence_parallel = stack.sequence_parallel.front(); });
  check(s.sequence_parallel, [&](Layout& l, bool v) {
    if (v || (stack.tensor && !parallel)) l.tensor = 2, l.sequence_parallel = v;
  });
  check(s.pipeline_degrees, [&](Layout& l, std::int64_t v) { l.pipeline = v, l.schedule = usual; });
  check(s.schedules, [](Layout& l, Schedule v) {
    if (v != Schedule::one_f_one_b) l.pipeline = 2, l.schedule = v;
  });
  check(s.virtual_stages, [&](Layout& l, std::int64_t v) { l.virtual_stages = v, l.schedule = usual; });
  check(s.context_degrees, [&](Layout& l, std::int64_t v) {
    l.context = v, l.context_ring = !stack.context_ring.empty() && stack.context_ring.front();
  });
  check(s.context_ring, [](Layout& l, bool v) {
    if (v) l.context = 2, l.context_ring = true;
  });
  check(s.reshard_after_forward, [](Layout& l, bool v) { l.reshard_after_forward = v; });
  check(s.reduce_every_microbatch, [](Layout& l, bool v) { l.reduce_every_microbatch = v; });
  check(s.dispatchers, [](Layout& l, Dispatcher v) { l.expert = 2, l.dispatcher = v; });
  check(s.exchange_overlap, [&](Layout& l, bool v) {
    if (v && !stack.overlaps.empty()) l.exchange_overlap = true, l.schedule = stack.overlaps.front();
  });
  check(s.cuda_graphs, [](Layout& l, CudaGraphs v) { l.cuda_graphs = v; });
  check(s.recompute, [](Layout& l, const Recompute& v) { l.recompute = v; });
  for (const std::int64_t copies : s.expert_copies)
    if (copies > 0 && stack.placement != PlacementSupport::copies)
      throw_usage("stack {}: found expert_copies {}, which its trainer does not run", p.stack.name, copies);
}

}  // namespace

LayoutSpace::LayoutSpace(const SearchProblem& problem) : problem_(problem) {
  check_asked(problem);
  for (const Recompute& policy : choices(problem.space.recompute, policies(problem.stack.layouts))) {
    Layout one;
    one.recompute = policy;
    if (!problem.space.recompute.empty() || refusal(one).empty()) recompute_.push_back(policy);
  }
}

std::string LayoutSpace::refusal(const Layout& layout) const {
  try {
    layout.check(problem_.model, "");
    if (layout.recompute.counts_in_chunks()) layout.recompute.check(problem_.model.layers, "", chunks_.of(layout));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<Recompute> LayoutSpace::recompute_of(const Layout& l) const {
  using Which = Recompute::Blocks::Which;
  std::vector<Recompute> out = recompute_;
  if (!problem_.space.recompute.empty()) return out;
  const std::vector<std::int64_t>& chunks = chunks_.of(l);
  std::int64_t least = problem_.model.layers,
               most = 0;  // layers of the emptiest chunk that is not empty, and of the fullest
  for (const std::int64_t chunk : chunks)
    if (chunk > 0) least = std::min(least, chunk), most = std::max(most, chunk);
  const auto add = [&](Which which, std::int64_t n) {
    Recompute some;
    some.add({Module::block, {{which, n, 0}}});
    if (std::ranges::find(out, some) == out.end()) out.push_back(std::move(some));
  };
  for (const Which which : problem_.stack.layouts.recompute_blocks)
    for (std::int64_t part = 1; part < kParts; ++part)
      if (const std::int64_t n = which == Which::every ? part + 1 : (most * part + kParts - 1) / kParts;
          which == Which::every ? n <= least : n < most)
        add(which, n);
  return out;
}

std::vector<std::int64_t> LayoutSpace::virtual_stages(std::int64_t pipeline, Schedule schedule) const {
  if (pipeline == 1 || schedule == Schedule::zero_bubble) return {1};
  if (schedule == Schedule::dualpipe_v) return {2};
  std::vector<std::int64_t> usual{1};
  for (std::int64_t v = 2; problem_.stack.layouts.interleaved && pipeline * v <= problem_.model.layers + kEnds; ++v) {
    const std::int64_t chunks = pipeline * v, missing = (chunks - problem_.model.layers % chunks) % chunks;
    if (missing == 0 || (missing >= kEnds && missing <= kMostMissing)) usual.push_back(v);
  }
  return choices(problem_.space.virtual_stages, usual);
}

std::vector<std::int64_t> LayoutSpace::context_degrees(std::int64_t data) const {
  std::vector<std::int64_t> usual{1};
  if (!problem_.stack.layouts.context_ring.empty())
    for (const std::int64_t degree : divisors(data))
      if (degree > 1 && problem_.seq % degree == 0 && problem_.seq / degree >= kFewestContextTokens)
        usual.push_back(degree);
  std::vector<std::int64_t> wanted = choices(problem_.space.context_degrees, usual);
  std::erase_if(wanted, [&](std::int64_t degree) { return data % degree != 0 || problem_.seq % degree != 0; });
  return wanted;
}

void LayoutSpace::each_keeping(const Layout& l, std::int64_t microbatches,
                               const std::function<void(const Keeping&)>& take) const {
  const SearchSpec& s = problem_.space;
  const StackLayouts& stack = problem_.stack.layouts;
  const std::int64_t data = problem_.gpus / (l.tensor * l.pipeline);
  const bool staged = l.pipeline > 1;
  const bool even = problem_.global_batch / (data / l.context) % l.microbatch == 0;
  const std::vector<bool> reshard =
      staged ? std::vector<bool>{false} : choices(s.reshard_after_forward, stack.reshard_after_forward);
  std::vector<bool> reduce =
      staged ? std::vector<bool>{false} : choices(s.reduce_every_microbatch, stack.reduce_every_microbatch);
  if (microbatches == 1 && l.tensor == 1) reduce.resize(1);  // both choices are the same
  const std::vector<Dispatcher> dispatchers =
      l.expert > 1 ? choices(s.dispatchers, problem_.stack.dispatchers) : std::vector{Dispatcher::alltoall};
  for (const std::int64_t shard : choices(s.shard_sizes, divisors(data))) {
    if (data % shard != 0 || shard % l.context != 0 || shard * (l.whole_experts ? l.tensor : 1) % l.expert != 0)
      continue;
    const std::int64_t replicate = data / shard;
    if (replicate > 1 && l.expert > 1 && !stack.expert_replicas) continue;
    if (replicate > 1 && !stack.replicas && !stack.optimizer_shard) continue;
    std::vector<std::int64_t> over{1};
    if (!s.optimizer_shard_degrees.empty()) {
      over.clear();
      for (const std::int64_t ranks : s.optimizer_shard_degrees)
        if (ranks % shard == 0 && replicate % (ranks / shard) == 0) over.push_back(ranks / shard);
    } else if (stack.optimizer_shard) {
      over = divisors(replicate);
    }
    for (const std::int64_t optimizer_shard : over)
      for (const bool resharded : reshard)
        for (const bool every : reduce) {
          const bool resident =
              !resharded && !every && (l.tensor > 1 || staged || problem_.stack.memory.resident_weights);
          if (resident && !even) continue;
          const bool overlaps = resident && l.expert > 1 && problem_.stack.exchange_overlap &&
                                std::ranges::find(stack.overlaps, l.schedule) != stack.overlaps.end();
          for (const Dispatcher dispatcher : dispatchers)
            for (const bool overlap :
                 choices(s.exchange_overlap, overlaps ? std::vector<bool>{false, true} : std::vector<bool>{false}))
              for (const CudaGraphs graphs : choices(s.cuda_graphs, {CudaGraphs::none}))
                if (!overlap || (overlaps && dispatcher != Dispatcher::allgather))
                  take({shard, optimizer_shard, resharded, every, dispatcher, overlap, graphs});
        }
  }
}

void LayoutSpace::keep(Layout& l, const Keeping& k) const {
  l.shard = k.shard, l.optimizer_shard = k.optimizer_shard;
  l.replicate = problem_.gpus / (l.tensor * l.pipeline * k.shard);
  l.reshard_after_forward = k.reshard, l.reduce_every_microbatch = k.reduce_every;
  l.dispatcher = k.dispatcher, l.exchange_overlap = k.overlap, l.cuda_graphs = k.graphs;
}

std::vector<Layout> LayoutSpace::members(const LayoutGroup& group) const {
  std::vector<Layout> out;
  each_keeping(group.layout, group.microbatches, [&](const Keeping& k) { keep(out.emplace_back(group.layout), k); });
  return out;
}

std::vector<Layout> LayoutSpace::narrowest(const LayoutGroup& group) const {
  const auto shared = [](const Keeping& k) { return std::pair(k.shard, k.shard * k.optimizer_shard); };
  const auto wider = [&](const Keeping& a, const Keeping& b) {
    return shared(a) != shared(b) && shared(a).first <= shared(b).first && shared(a).second <= shared(b).second;
  };
  std::vector<Keeping> found;
  each_keeping(group.layout, group.microbatches, [&](const Keeping& k) {
    const bool like = k.dispatcher == group.layout.dispatcher || k.dispatcher == Dispatcher::allgather;
    if (!like || k.graphs != group.layout.cuda_graphs) return;
    if (std::ranges::any_of(found, [&](const Keeping& other) { return wider(k, other); })) return;
    std::erase_if(found, [&](const Keeping& other) { return wider(other, k); });
    found.push_back(k);
  });
  std::vector<Layout> out(found.size(), group.layout);
  for (std::size_t i = 0; i < found.size(); ++i) keep(out[i], found[i]);
  return out;
}

std::optional<LayoutGroup> LayoutSpace::group_of(Layout l, const Microbatches& sequences) const {
  LayoutGroup group{.layout = {}, .microbatches = sequences.count};
  const auto rank = [](const Keeping& k) {
    return std::tuple(k.shard * k.optimizer_shard, k.shard, k.reshard, k.reduce_every, !k.overlap);
  };
  std::optional<Keeping> least;
  each_keeping(l, sequences.count, [&](const Keeping& k) {
    group.least_shard = group.members++ == 0 ? k.shard : std::min(group.least_shard, k.shard);
    const Exchange exchange{k.dispatcher, k.overlap, k.graphs};
    if (std::ranges::find(group.exchanges, exchange) == group.exchanges.end()) group.exchanges.push_back(exchange);
    if (!least || rank(k) > rank(*least)) least = k;
  });
  if (!least) return {};
  keep(l, *least);
  group.layout = std::move(l);
  return group;
}

void LayoutSpace::add_groups(Layout l, std::vector<LayoutGroup>& out) const {
  const SearchSpec& s = problem_.space;
  const std::int64_t data = problem_.gpus / (l.tensor * l.pipeline), data_ranks = data / l.context;
  if (problem_.global_batch % data_ranks != 0) return;
  const std::int64_t sequences = problem_.global_batch / data_ranks;
  const bool smaller_last = problem_.stack.layouts.smaller_last_microbatch && l.pipeline == 1;
  const std::vector<Recompute> policies = recompute_of(l);
  for (const std::int64_t microbatch : choices(s.microbatches, microbatch_sizes(sequences, smaller_last))) {
    const Microbatches split = Microbatches::split(sequences, microbatch);
    if (microbatch > sequences || (!split.even() && !smaller_last)) continue;
    if (l.schedule == Schedule::dualpipe_v ? split.count < 2 * l.pipeline
                                           : l.virtual_stages > 1 && split.count % l.pipeline != 0)
      continue;
    l.microbatch = microbatch;
    std::optional<LayoutGroup> group = group_of(l, split);
    if (!group) continue;
    for (const Recompute& policy : policies) {
      group->layout.recompute = policy;
      if (const std::string why = refusal(group->layout); why.empty())
        out.push_back(*group);
      else if (!s.recompute.empty())
        refused_.try_emplace(to_string(policy), layout_label(group->layout, problem_.stack) + why);
    }
  }
}

std::vector<LayoutGroup> LayoutSpace::groups() const {
  const SearchProblem& p = problem_;
  const SearchSpec& s = p.space;
  const StackLayouts& stack = p.stack.layouts;
  std::vector<LayoutGroup> out;
  std::vector<std::int64_t> tensors{1}, stages{1};
  if (stack.tensor) tensors = divisors(std::min(p.gpus, p.cluster.gpus_per_node));
  if (!stack.schedules.empty() && p.cluster.others.empty()) {  // with several kinds of nodes, pipelines have no bound
    stages = divisors(p.gpus);
    std::erase_if(stages, [&](std::int64_t n) { return n > p.model.layers; });
  }
  for (const std::int64_t tensor : choices(s.tensor_degrees, tensors))
    for (const std::int64_t pipeline : choices(s.pipeline_degrees, stages)) {
      if (p.gpus % (tensor * pipeline) != 0) continue;
      Layout l;
      l.tensor = tensor, l.pipeline = pipeline;
      l.reshard_after_forward = l.reduce_every_microbatch = pipeline == 1;
      for (const Schedule schedule :
           pipeline > 1 ? choices(s.schedules, stack.schedules) : std::vector{Schedule::one_f_one_b})
        for (const std::int64_t chunks : virtual_stages(pipeline, schedule))
          for (const std::int64_t context : context_degrees(p.gpus / (tensor * pipeline)))
            for (const bool ring : context > 1 ? choices(s.context_ring, stack.context_ring) : std::vector<bool>{false})
              for (const bool sequence : sequence_parallel(tensor))
                for (const auto& [expert, whole] : expert_degrees(tensor)) {
                  l.schedule = schedule, l.virtual_stages = chunks;
                  l.context = context, l.context_ring = ring;
                  l.sequence_parallel = sequence, l.expert = expert, l.whole_experts = whole;
                  l.shard = p.gpus / (tensor * pipeline);
                  for (Placement& placement : placements(expert, whole)) {
                    l.placement = std::move(placement);
                    if (l.shard * (whole ? tensor : 1) % expert == 0 && refusal(l).empty()) add_groups(l, out);
                  }
                }
    }
  check_recompute(out);
  return out;
}

void LayoutSpace::check_recompute(const std::vector<LayoutGroup>& groups) const {
  for (const Recompute& asked : problem_.space.recompute)
    if (const auto refused = refused_.find(to_string(asked));
        refused != refused_.end() &&
        std::ranges::none_of(groups, [&](const LayoutGroup& group) { return group.layout.recompute == asked; }))
      throw_error(Code::finding, "search.recompute: found {}, which no layout takes: {}", refused->first,
                  refused->second);
}

std::vector<Layout> all_layouts(const SearchProblem& problem) {
  const LayoutSpace space(problem);
  std::vector<Layout> out;
  for (const LayoutGroup& group : space.groups())
    for (Layout& layout : space.members(group)) out.push_back(std::move(layout));
  return out;
}

std::vector<Placement> LayoutSpace::placements(std::int64_t expert, bool whole) const {
  const std::vector<std::int64_t>& asked = problem_.space.expert_copies;
  std::vector<Placement> out;
  const auto planned = problem_.placements.find(expert);
  if (asked.empty() || std::ranges::find(asked, 0) != asked.end())
    out.push_back(planned == problem_.placements.end() ? Placement{} : planned->second);
  const auto copies = problem_.copies.find(expert);
  if (copies != problem_.copies.end() && !whole) out.insert(out.end(), copies->second.begin(), copies->second.end());
  return out;
}

std::vector<bool> LayoutSpace::sequence_parallel(std::int64_t tensor) const {
  if (tensor == 1) return {false};
  const bool parallel = problem_.model.attention.parallel != AttentionSpec::Parallel::none;
  return choices(problem_.space.sequence_parallel, {!parallel && problem_.stack.layouts.sequence_parallel.front()});
}

std::vector<std::pair<std::int64_t, bool>> LayoutSpace::expert_degrees(std::int64_t tensor) const {
  const std::int64_t experts = problem_.model.experts;
  std::vector<bool> whole{false};
  if (tensor > 1 && experts > 0) {
    const auto& asked = problem_.space.expert_tensor_degrees;
    const auto has = [&](std::int64_t degree) { return std::ranges::find(asked, degree) != asked.end(); };
    whole.clear();
    if (asked.empty() || has(tensor)) whole.push_back(false);
    if (asked.empty() || has(1)) whole.push_back(true);
  }
  std::vector<std::pair<std::int64_t, bool>> out;
  for (const std::int64_t degree : choices(problem_.space.expert_degrees, divisors(std::max<std::int64_t>(1, experts))))
    for (const bool each : whole) out.emplace_back(degree, each);
  return out;
}

}  // namespace wt
