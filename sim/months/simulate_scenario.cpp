#include "sim/months/simulate_scenario.hpp"

#include <algorithm>
#include <cmath>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/number.hpp"
#include "configs/spec/support/quantity.hpp"
#include "sim/months/fault_laws.hpp"
#include "sim/months/replay_trace.hpp"

namespace wt {
namespace {

bool does(const Scenario& s, Recovery recovery) { return std::ranges::count(s.policy.on_loss, recovery) > 0; }

EntityTree drill_tree(const Scenario& s, std::int64_t ranks) {
  if (ranks < 1 || ranks % s.nodes.ranks != 0)
    throw_error(Code::usage, "{}: found {} ranks on nodes of {}, needs whole nodes", s.file.string(), ranks,
                s.nodes.ranks);
  const std::int64_t nodes = ranks / s.nodes.ranks;
  return {.nodes = nodes,
          .spares = s.nodes.spares,
          .ranks_per_node = s.nodes.ranks,
          .nodes_per_rack = s.nodes.per_rack > 0 ? s.nodes.per_rack : nodes + s.nodes.spares};
}

Continuation drill_policy(const Scenario& s, const EntityTree& tree) {
  Continuation out;
  if (!does(s, Recovery::shrink) && !does(s, Recovery::without_replica)) return out;
  out = {.units = tree.nodes, .least = std::min(tree.nodes, s.policy.min_replicas), .step_factor = {1}};
  for (std::int64_t k = 1; k <= tree.nodes; ++k) out.step_factor.push_back(replica_step_factor(tree.nodes, k, 0));
  return out;
}

SimulatedStrike difference(const RunOutcome& with, const RunOutcome& without, double step_s) {
  const auto more = [&](Bucket b) { return with.bucket_s(b) - without.bucket_s(b); };
  SimulatedStrike out;
  out.struck = with.wall_ns != without.wall_ns || with.failures != without.failures;
  out.restarts = with.failures - without.failures;
  out.down_s = more(Bucket::infrastructure_recovery);
  out.start_s = more(Bucket::accelerator_init) + more(Bucket::program_startup);
  out.load_s = more(Bucket::checkpoint_restore);
  out.replay_s = more(Bucket::wasted_progress);
  out.planned_s = more(Bucket::custom_events);
  out.slower_s = more(Bucket::other);
  out.steps_lost = std::llround(out.replay_s / step_s);
  return out;
}

}  // namespace

SimulatedScenario simulate_scenario(const Scenario& scenario, const RunScenario& given, std::int64_t ranks) {
  for (const FaultEvent& e : scenario.events)
    if (e.when.by == FaultTime::By::rate)
      throw_error(Code::usage,
                  "{}: found an event at a rate, which a study's months draw; needs a step, a time or a trace",
                  scenario.file.string());
  const EntityTree tree = drill_tree(scenario, ranks);
  const Continuation policy = drill_policy(scenario, tree);
  RunScenario run = given;
  run.spares = does(scenario, Recovery::spare) ? scenario.nodes.spares : 0;
  // A restart has all nodes again; where the run goes on with fewer first, those that are lost stay away.
  run.repair_s = does(scenario, Recovery::restart) && policy.units == 1 ? 0 : kLongest_s / 4;
  FaultLaws laws;
  add_scenario(scenario, run, tree, laws);
  std::ranges::stable_sort(laws.given, {}, &GivenStrike::at_s);
  const auto replayed = [&](std::size_t strikes) {
    const std::vector<GivenStrike> first(laws.given.begin(), laws.given.begin() + static_cast<std::ptrdiff_t>(strikes));
    FaultTrace trace(tree, laws.laws, first, 1);
    return replay_trace(run, policy, trace);
  };
  SimulatedScenario out;
  out.undisturbed = out.run = replayed(0);
  for (std::size_t i = 0; i < laws.given.size(); ++i) {
    const RunOutcome with = replayed(i + 1);
    SimulatedStrike strike = difference(with, out.run, run.step_s);
    strike.at_s = laws.given[i].at_s;
    strike.event = laws.event_of[static_cast<std::size_t>(laws.given[i].law)];
    out.strikes.push_back(strike);
    out.run = with;
  }
  return out;
}

}  // namespace wt
