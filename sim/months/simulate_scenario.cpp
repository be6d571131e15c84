#include "sim/months/simulate_scenario.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "sim/months/fault_laws.hpp"
#include "sim/months/replay_trace.hpp"

namespace wt {
namespace {

bool does(const Scenario& s, Recovery recovery) { return std::ranges::count(s.policy.on_loss, recovery) > 0; }

/// The drill's nodes. With without_replica, a replica must be whole nodes.
EntityTree drill_tree(const Scenario& s, std::int64_t ranks, std::int64_t replicas) {
  if (ranks < 1 || ranks % s.nodes.ranks != 0)
    throw_usage("{}: found {} ranks on nodes of {}, needs whole nodes", s.file.string(), ranks, s.nodes.ranks);
  const std::int64_t nodes = ranks / s.nodes.ranks;
  const bool goes_on = does(s, Recovery::without_replica);
  if (goes_on && (replicas < 2 || nodes % replicas != 0))
    throw_usage("{}: found without_replica with {} replicas on {} nodes, needs two or more of whole nodes",
                s.file.string(), replicas, nodes);
  return {.nodes = nodes,
          .spares = s.nodes.spares,
          .ranks_per_node = s.nodes.ranks,
          .nodes_per_rack = s.nodes.per_rack > 0 ? s.nodes.per_rack : nodes + s.nodes.spares,
          .replicas = goes_on ? replicas : 0};
}

Continuation drill_policy(const Scenario& s, const EntityTree& tree, std::int64_t microbatches) {
  Continuation out;
  if (!does(s, Recovery::shrink) && tree.replicas == 0) return out;
  const std::int64_t units = tree.replicas > 0 ? tree.replicas : tree.nodes;
  out = {.units = units,
         .min_units = std::min(units, s.policy.min_replicas),
         .step_factor = {1},
         .restart_all = does(s, Recovery::restart)};
  for (std::int64_t k = 1; k <= units; ++k)
    out.step_factor.push_back(replica_step_factor(units, k, tree.replicas > 0 ? microbatches : 0));
  return out;
}

SimulatedFault difference(const RunOutcome& with, const RunOutcome& without, const RunScenario& run) {
  const auto more = [&](Bucket b) { return with.bucket_s(b) - without.bucket_s(b); };
  SimulatedFault out;
  out.took_effect = with.wall_ns != without.wall_ns || with.failures != without.failures;
  const auto starts = [](const RunOutcome& r) { return r.failures + r.planned_stops + r.silent_errors; };
  out.restarts = starts(with) - starts(without);
  out.down_s = more(Bucket::infrastructure_recovery);
  out.warm_up_s = more(Bucket::program_startup);
  out.start_s = more(Bucket::accelerator_init) + out.warm_up_s;
  out.load_s = more(Bucket::checkpoint_restore);
  out.replay_s = more(Bucket::wasted_progress);
  out.planned_s = more(Bucket::custom_events);
  if (with.planned_stops > without.planned_stops) out.planned_s += more(Bucket::checkpoint_save);
  out.slower_s = more(Bucket::other);
  out.steps_lost = static_cast<std::int64_t>(out.replay_s / run.step_s + 1e-6);
  out.under_way_s = out.replay_s - as_double(out.steps_lost) * run.step_s;
  return out;
}

/// With the nodes that the fault leaves, or with all if too few are left.
double first_step_s(const RunScenario& run, const Continuation& policy, const EntityTree& tree, const FaultLaw& law,
                    const ScheduledFault& fault) {
  const bool fewer = law.effect == FaultLaw::Effect::failure && (run.tolerance.replicas > 0 || law.nodes_to_repair);
  const std::int64_t lost = ceil_div(tree.nodes_of(law.domain, fault.entity).count, tree.nodes / policy.units);
  const std::int64_t left = fewer && policy.units - lost >= policy.min_units ? policy.units - lost : policy.units;
  return run.step_s * policy.step_factor[static_cast<std::size_t>(left)];
}

}  // namespace

SimulatedScenario simulate_scenario(const Scenario& scenario, const RunScenario& given, std::int64_t ranks) {
  for (const FaultEvent& e : scenario.events)
    if (e.when.by == FaultTime::By::rate)
      throw_usage("{}: found an event at a rate, which a study's months draw; needs a step, a time or a trace",
                  scenario.file.string());
  RunScenario run = given;
  const EntityTree tree = drill_tree(scenario, ranks, run.tolerance.replicas);
  const Continuation policy = drill_policy(scenario, tree, run.tolerance.microbatches);
  run.tolerance.replicas = tree.replicas;
  run.tolerance.stall_s = run.detect_s + run.reschedule_s;
  run.tolerance.recover_s = run.restart_s + run.reload_s;
  run.spares = does(scenario, Recovery::spare) ? scenario.nodes.spares : 0;
  // A restart has all nodes again. But if the run first continues with fewer, lost nodes stay away.
  run.repair_s = does(scenario, Recovery::restart) && policy.units == 1 ? 0 : kLongest_s / 4;
  FaultLaws laws;
  add_scenario(scenario, run, tree, laws);
  std::ranges::stable_sort(laws.scheduled, {}, &ScheduledFault::at_s);
  const auto replayed = [&](std::size_t faults) {
    const std::vector<ScheduledFault> first(laws.scheduled.begin(),
                                            laws.scheduled.begin() + static_cast<std::ptrdiff_t>(faults));
    FaultTrace trace(tree, laws.laws, first, 1);
    return replay_trace(run, policy, trace);
  };
  SimulatedScenario out;
  out.undisturbed = out.run = replayed(0);
  double recovered_s = 0;  // end of the first step after a recovery
  for (std::size_t i = 0; i < laws.scheduled.size(); ++i) {
    const RunOutcome with = replayed(i + 1);
    SimulatedFault fault = difference(with, out.run, run);
    fault.at_s = laws.scheduled[i].at_s;
    const FaultLaw& law = laws.laws[static_cast<std::size_t>(laws.scheduled[i].law)];
    const bool recovers = fault.at_s < recovered_s;  // from the previous fault
    if (!recovers) fault.first_step_s = first_step_s(run, policy, tree, law, laws.scheduled[i]);
    if (law.effect == FaultLaw::Effect::failure)
      fault.detect_s = std::min(fault.down_s, law.detect_s >= 0 ? law.detect_s : run.detect_s);
    if (fault.restarts > 0)
      recovered_s = (recovers ? recovered_s : fault.at_s) + fault.down_s + fault.start_s + fault.load_s +
                    fault.planned_s + fault.first_step_s;
    fault.event = laws.event_of[static_cast<std::size_t>(laws.scheduled[i].law)];
    out.faults.push_back(fault);
    out.run = with;
  }
  return out;
}

}  // namespace wt
