#include "planner/simulate/simulated_run.hpp"

#include <algorithm>

#include "configs/base/text.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/study.hpp"
#include "sim/cost/memory/dispatcher_memory.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/published_constants.hpp"
#include "sim/cost/stacks/step_family.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/routed_memory.hpp"

namespace wt {
namespace {

/// What the cluster's file says of power, or what its GPU's data sheet gives; nothing of a cluster of several kinds of
/// nodes.
std::optional<PowerSpec> power_of(const ClusterSpec& cluster) {
  if (cluster.prices && cluster.prices->power) return cluster.prices->power;
  const auto sheet = data_sheet(cluster.gpu_name);
  if (!sheet || !cluster.others.empty()) return std::nullopt;
  return data_sheet_power(*sheet, cluster.gpus_per_node, usual_cooling(*sheet));
}

void add_memory_of_fullest(SimulatedRun& step, const RoutingSource& routing) {
  const std::int64_t fullest = fullest_memory(step).rank;
  step.fullest_program = step.programs.programs.at(
      static_cast<std::size_t>(step.programs.class_of_rank.at(static_cast<std::size_t>(fullest))));
  step.fullest_replay =
      replay_memory(step.fullest_program, rows_of_rank(step.fullest_program, step.run.layout, routing, fullest), true);
  step.moments = memory_moments(step.fullest_program, step.fullest_replay);
}

}  // namespace

SimulatedRun simulated_run(const SimulateQuestion& question) {
  SimulatedRun step;
  step.cluster = question.cluster;
  step.run = choose_microbatch(question.run, kForTensors * step.cluster.usable_memory_bytes, question.run_file);
  const RunSpec& run = step.run;
  const auto routed = [&](const std::vector<std::string>& loads) {
    return read_routing(loads, run.model, run.tokens(), run.layout.expert);
  };
  const NamedRouting routing = routed(question.routing.empty() ? routing_for_model(run.model) : question.routing);
  step.routing_evidence = routing.evidence;
  step.routing = routing.source->description();
  TimeSources sources = question.sources;
  sources.compute = run.precision, sources.precisions = run.precisions;
  std::optional<StepRatiosByKind> own_ratios;
  if (!question.measured.empty()) {
    step.own = own_runs(question.measured, sources);
    own_ratios = ratios_of(step.own->steps, run, step.cluster, sources);
    sources.factors = step.own->steps.factors();
  }
  const MachineTimes times = make_times(sources, step.cluster, run.layout.world());
  step.basis = times.basis;
  step.stack = times.stack;
  if (step.own) step.basis += ", " + counted(std::ssize(step.own->runs), "measured step");
  step.cost = times.cost;
  if (!step.cluster.shared_cores()) {
    step.memory = PublishedConstants::get().memory.of(times.stack, run.layout.world());
    if (step.own) step.memory = step.own->memory(*step.memory);
    step.features = features_of(run, step.cluster, times.stack);
    step.power = power_of(step.cluster);
  }
  const StepRatiosByKind off_by = own_ratios ? *own_ratios : times.intervals.of(step_family(run.model, run.layout));
  const RememberedCost cost(*times.cost);
  const auto simulated = [&](const RoutingSource& loads_of) {
    return simulated_step(step_question(run, step.cluster, times.stack, loads_of), cost,
                          {.replay = {.health = {}, .off_by = off_by}});
  };
  static_cast<SimulatedStep&>(step) = simulated(*routing.source);
  if (question.routing.empty() && run.model.experts > 0)
    step.balanced_s = simulated(*routed({"balanced"}).source).replay.step_s;
  add_memory_of_fullest(step, *routing.source);
  return step;
}

double peak_bytes(const SimulatedRun& step) {
  double peak = 0;
  for (const StepTimeline& t : step.replay.timelines) peak = std::max(peak, t.peak_bytes);
  return peak;
}

MemoryUse fullest_memory(const SimulatedRun& step) {
  const auto share = [](const MemoryUse& m) {
    return m.usable_bytes > 0 ? m.process.high / m.usable_bytes : m.process.high;
  };
  MemoryUse fullest;
  for (const StepTimeline& t : step.replay.timelines) {
    const NodeSpec& node = step.cluster.of_kind(step.cluster.kind_of(step.cluster.node_of(t.rank)));
    const auto c = static_cast<std::size_t>(step.programs.class_of_rank[static_cast<std::size_t>(t.rank)]);
    const LiveMemory live = live_memory(step.programs.programs[c], t.peak_bytes);
    const auto forecast = [&](MemoryOf kind) { return step.memory ? step.memory->of(kind, live) : as_live(live); };
    const MemoryUse own{
        t.rank,
        live,
        forecast(MemoryOf::peak_allocated),
        forecast(MemoryOf::peak_reserved),
        step.memory ? step.memory->process(live, dispatcher_bytes(step.run.model, step.run.layout)) : as_live(live),
        node.usable_memory_bytes};
    if (fullest.live.peak() == 0 || share(own) > share(fullest)) fullest = own;
  }
  return fullest;
}

}  // namespace wt
