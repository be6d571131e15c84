// Evaluates one layout of a search: memory, bounds, simulated step.
#include "planner/search/search_evaluate.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"
#include "sim/bounds/bounds.hpp"
#include "sim/cost/memory/dispatcher_memory.hpp"
#include "sim/cost/stacks/step_family.hpp"
#include "sim/program/compose/restore.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {
namespace {

/// Largest over mean rows of the expert ranks, from one layer's shares.
double imbalance(const std::vector<double>& shares, const Layout& layout, std::int64_t layer) {
  const std::vector<double> rows = rows_received({shares}, layout, layer);
  return *std::ranges::max_element(rows) * as_double(layout.expert) / std::accumulate(rows.begin(), rows.end(), 0.0);
}

/// For each kind of node: the first rank on it that is the busiest of its expert group.
std::vector<std::int64_t> bounding_ranks(const SearchProblem& problem, const Layout& layout,
                                         const RoutingSource& routing) {
  const std::int64_t busiest = busiest_rank(problem, layout, routing), expert = layout.expert;
  std::vector<std::int64_t> ranks;
  for (const std::size_t kind : problem.cluster.kinds(layout.world())) {
    std::int64_t rank = busiest;
    while (rank < layout.world() && problem.cluster.kind_of(problem.cluster.node_of(rank)) != kind) rank += expert;
    if (rank < layout.world()) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

Microbatches sequences_of(const SearchProblem& problem, const Layout& layout) {
  return Microbatches::split(problem.global_batch / layout.data_ranks(), layout.microbatch);
}

Layout with_stack_chunks(const SearchProblem& problem, Layout layout) {
  return with_stack_layers(problem.stack, problem.model, std::move(layout));
}

const std::vector<std::int64_t>& StackChunks::of(const Layout& layout) {
  const auto [entry, fresh] =
      known_.try_emplace({layout.pipeline, layout.virtual_stages, static_cast<std::int64_t>(layout.schedule)});
  if (fresh) entry->second = with_stack_chunks(problem_, layout).layers_of_chunks(problem_.model.layers);
  return entry->second;
}

std::string key_of(const Layout& layout) {
  return fmt::format("{}, {}, microbatch {}", layout.name(), to_string(layout.recompute), layout.microbatch);
}

StepRatiosByKind off_by(const SearchProblem& problem, const Layout& layout) {
  return problem.intervals.of(step_family(problem.model, layout));
}

ProgramOptions program_options(const SearchProblem& problem, const Layout& layout) {
  return program_options(problem, sequences_of(problem, layout));
}

ProgramOptions program_options(const SearchProblem& problem, const Microbatches& sequences) {
  ProgramOptions options = program_options(problem.seq, sequences, problem.precision, problem.cluster.shared_cores());
  take_memory(problem.stack, options);
  options.precisions = problem.precisions;
  options.lora = problem.lora;
  options.tensor_traffic = problem.cost.get().traits().tensor_traffic;
  return options;
}

StepProgram step_program(const SearchProblem& problem, const Layout& layout) {
  return step_program(problem.model, layout, program_options(problem, layout), problem.stack,
                      problem.cluster.shared_cores());
}

std::unique_ptr<RoutingSource> routing_of(const SearchProblem& problem, const Layout& layout) {
  const Microbatches n = sequences_of(problem, layout);
  const std::int64_t tokens = problem.seq / layout.context;
  return mean_routing(problem.model, {n.count, n.each * tokens, n.last * tokens}, layout.expert, problem.scenarios);
}

std::int64_t busiest_rank(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing) {
  std::vector<double> load(static_cast<std::size_t>(layout.expert), 0.0);
  for (std::int64_t layer = 0; layer < problem.model.blocks(); ++layer) {
    const std::vector<double> rows = rows_received({routing.counts(0, 0, layer, 0)}, layout, layer);
    for (std::size_t e = 0; e < load.size(); ++e) load[e] += rows[e];
  }
  return std::ranges::max_element(load) - load.begin();
}

double mean_imbalance(const SearchProblem& problem, const Layout& layout) {
  if (problem.scenarios.empty() || layout.expert == 1) return 1;
  const auto routing = routing_of(problem, layout);
  double sum = 0;
  for (std::int64_t layer = 0; layer < problem.model.blocks(); ++layer)
    sum += imbalance(routing->counts(0, 0, layer, 0), layout, layer);
  return sum / as_double(problem.model.blocks());
}

double p99_imbalance(const SearchProblem& problem, const Layout& layout) {
  if (problem.model.router.padded && layout.expert > 1) return problem.model.router.capacity_factor;
  if (problem.scenarios.empty() || layout.expert == 1) return 1;
  constexpr double kShare = 0.99;
  const double tokens = even_rows(problem, layout, sequences_of(problem, layout).each) * as_double(layout.expert) /
                        as_double(problem.model.top_k);
  double trained = 1;
  std::vector<double> all;
  for (const LoadScenario& scenario : problem.scenarios)
    if (scenario.trained)
      trained = std::max(trained, fullest_rank(*scenario.trained, problem.model, layout.expert, tokens, kShare));
    else
      for (std::int64_t layer = 0; layer < problem.model.blocks(); ++layer)
        all.push_back(imbalance(shares_of(scenario, layer), layout, layer));
  return all.empty() ? trained : std::max(trained, quantile(std::move(all), kShare));
}

double even_rows(const SearchProblem& problem, const Layout& layout, std::int64_t sequences) {
  const std::int64_t senders = layout.whole_experts ? layout.tensor : 1;  // they share a data rank's tokens
  return as_double(sequences * problem.seq / layout.context * problem.model.top_k) / as_double(senders);
}

namespace {

MemoryForecast process_of(const SearchProblem& problem, const Layout& layout, const LiveMemory& live) {
  return problem.memory ? problem.memory->process(live, dispatcher_bytes(problem.model, layout)) : as_live(live);
}

/// Memory of the stage whose process needs the most. Stops early when `enough` returns true for the highest peak so
/// far.
StepMemory live_step_memory(const SearchProblem& problem, const Layout& given, bool with_moments,
                            const std::function<bool(double peak_bytes)>& enough) {
  const Layout layout = with_stack_chunks(problem, given);
  const Microbatches all = sequences_of(problem, layout);
  const Microbatches some = all.at_most(microbatches_to_peak(layout) + (all.even() ? 0 : 1));
  ProgramOptions options = program_options(problem, some);
  options.step_microbatches = all.count;
  const double imbalance = p99_imbalance(problem, layout);
  const RowsBound rows = [&](int microbatch, int) {
    return even_rows(problem, layout, some.of(microbatch)) * imbalance;
  };
  StepMemory out;
  out.accepted_risk = problem.space.memory_risk;
  double most = -1, peak = 0;
  for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) {
    for (const Program& program : build_stages(problem.model, layout, options, stage, stage + 1)) {
      const LiveMemory live = live_memory(program, replay_memory(program, rows).peak_bytes);
      peak = std::max(peak, live.peak());
      const double needs = process_of(problem, layout, live).quantile(1 - out.accepted_risk);
      if (needs <= most) continue;
      most = needs;
      out.live = live;
      if (with_moments) out.moments = memory_moments(program, replay_memory(program, rows, true));
    }
    if (enough(peak)) {
      out.live = {0, peak};
      break;
    }
  }
  return out;
}

}  // namespace

StepMemory step_memory(const SearchProblem& problem, const Layout& layout, bool with_moments) {
  StepMemory out = live_step_memory(problem, layout, with_moments, [](double) { return false; });
  const StackMemory* model = problem.memory;
  out.allocated = model ? model->of(MemoryOf::peak_allocated, out.live) : as_live(out.live);
  out.reserved = model ? model->of(MemoryOf::peak_reserved, out.live) : as_live(out.live);
  out.process = process_of(problem, layout, out.live);
  return out;
}

double needed_bytes(const SearchProblem& problem, const Layout& layout) {
  const double probability = 1 - problem.space.memory_risk;
  // A process's need and its uncertainty increase with kept and with temporary memory. For any split of the peak, each
  // is at least the smaller of its values for all kept and for all temporary.
  const auto least = [&](double peak) {
    const MemoryForecast kept = process_of(problem, layout, {peak, 0}),
                         dynamic = process_of(problem, layout, {0, peak});
    return std::min(kept.bytes, dynamic.bytes) +
           std::min(kept.quantile(probability) - kept.bytes, dynamic.quantile(probability) - dynamic.bytes);
  };
  const LiveMemory live = live_step_memory(problem, layout, false, [&](double peak) {
                            return least(peak) > problem.memory_limit_bytes;
                          }).live;
  return least(live.peak()) > problem.memory_limit_bytes ? least(live.peak())
                                                         : process_of(problem, layout, live).quantile(probability);
}

double lane_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing) {
  const ProgramSet set = step_program(problem, layout).build();
  const Program& program = set.programs[0];
  double bound = 0;
  for (const std::int64_t rank : bounding_ranks(problem, layout, routing)) {
    const auto floors = routing_floors(program, layout, problem.cluster, routing, 0, rank);
    bound = std::max(bound, bound0(program, layout, problem.cluster, problem.cost, floors, rank));
  }
  return bound + problem.cost.get().traits().once_a_step.seconds;
}

double path_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing) {
  const ProgramSet set = step_program(problem, layout).build();
  double bound = 0;
  for (const std::int64_t rank : bounding_ranks(problem, layout, routing))
    bound = std::max(bound, bound1(set, layout, problem.cluster, problem.cost, routing, 0, rank));
  return bound + problem.cost.get().traits().once_a_step.seconds;
}

Simulated simulate_layout(const SearchProblem& problem, const Layout& layout, bool timeline) {
  StepOptions how;
  how.replay.timelines = timeline;
  how.replay.critical_alone = true;
  how.replay.off_by = off_by(problem, layout);
  const auto routing = routing_of(problem, layout);
  const ReplayResult replayed =
      simulated_step({step_program(problem, layout), problem.cluster, *routing}, problem.cost, how).replay;
  Simulated out;
  out.step_s = replayed.step_s;
  out.low_s = replayed.low_s;
  out.high_s = replayed.high_s;
  out.exposed_s = replayed.exposed_s;
  out.slowed_s = replayed.slowed_s;
  out.tokens_per_s_per_gpu =
      as_double(problem.global_batch * problem.seq) / (replayed.step_s * as_double(problem.gpus));
  if (problem.peak_flops > 0)
    out.mfu = out.tokens_per_s_per_gpu * flops_per_token(problem.model, problem.lora, problem.seq) / problem.peak_flops;
  const double sum = std::accumulate(replayed.evidence_s.begin(), replayed.evidence_s.end(), 0.0);
  for (std::size_t i = 0; i < out.evidence.size(); ++i) out.evidence[i] = sum > 0 ? replayed.evidence_s[i] / sum : 0;
  out.totals = replayed.totals;
  out.wall_s = replayed.wall_s;
  out.work = replayed.work;
  out.ranks = replayed.simulated_ranks;
  if (timeline) out.critical = replayed.timelines.front();
  return out;
}

double restore_broadcast_s(const SearchProblem& problem, const Layout& layout, double bytes_per_parameter) {
  const Layout staged = with_stack_chunks(problem, layout);
  const ProgramSet set = restore_programs(problem.model, staged, bytes_per_parameter);
  const ReplayOptions options{0, true, false, {}};
  return replay(set, staged, problem.model, problem.cluster, problem.cost, *balanced_routing(problem.model, 1), options)
      .step_s;
}

}  // namespace wt
