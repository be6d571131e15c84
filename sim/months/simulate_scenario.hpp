// A drill's scenario in the simulated months: the same file, replayed on the drill's virtual nodes.
#pragma once
#include <vector>

#include "configs/files/scenario.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

/// What one strike added to the run.
struct SimulatedStrike {
  std::size_t event = 0;        ///< of the scenario, from 0
  double at_s = 0;              ///< wall time
  bool struck = false;          ///< false: the run was over, or the member did not train
  std::int64_t restarts = 0;    ///< of the ranks
  std::int64_t steps_lost = 0;  ///< done and done again; the one under way was not done
  /// Seconds, by phase: detection and exchange of nodes with waiting, start of processes, load, what is
  /// done again of steps, stops that were announced, and steps that took longer.
  double down_s = 0, start_s = 0, load_s = 0, replay_s = 0, planned_s = 0, slower_s = 0;
  double detect_s = 0;      ///< part of down_s
  double warm_up_s = 0;     ///< part of start_s: what the first step after it takes longer
  double first_step_s = 0;  ///< that step without this; 0 where another fault struck before it
  double under_way_s = 0;   ///< part of replay_s: the step that was cut short, which was not done yet
  double total_s() const { return down_s + start_s + load_s + replay_s + planned_s + slower_s; }
};

struct SimulatedScenario {
  RunOutcome undisturbed, run;
  std::vector<SimulatedStrike> strikes;  ///< in the order of time
};

/// The run of `ranks` ranks with the scenario's events: `run` has its steps, step time, saves and the phases of a
/// recovery, as measured or assumed. Who is lost follows nodes and policy of the scenario: with `restart` a node is
/// there again at once, with `spare` one that stands by takes its place, with `shrink` the run starts again with equal
/// parts of the nodes, at least min_replicas of them; else it waits for as long as the event lasts. With
/// `without_replica` the others of run.tolerance.replicas detect, decide and do the step under way again,
/// in whole run.tolerance.microbatches; the replica starts beside them and joins at the start of a step, where its node
/// lives or once the event is over. What the tolerance says of times does not count. Throws Error{usage} as
/// add_scenario, for events at a rate, ranks that are no whole nodes and replicas that are none.
SimulatedScenario simulate_scenario(const Scenario& scenario, const RunScenario& run, std::int64_t ranks);

}  // namespace wt
