// A drill's scenario in simulated months: the same file, replayed on the drill's virtual nodes.
#pragma once
#include <vector>

#include "configs/files/scenario.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

/// The effect of one fault on the run.
struct SimulatedFault {
  std::size_t event = 0;        ///< index in the scenario
  double at_s = 0;              ///< wall time
  bool took_effect = false;     ///< false: the run was over, or the entity did not train
  std::int64_t restarts = 0;    ///< of the ranks
  std::int64_t steps_lost = 0;  ///< completed steps that were repeated, without the step in progress
  /// Additional seconds, by phase: detection, exchange of nodes and waiting; start of processes; load; repeated steps;
  /// planned stops; slower steps.
  double down_s = 0, start_s = 0, load_s = 0, replay_s = 0, planned_s = 0, slower_s = 0;
  double detect_s = 0;      ///< part of down_s
  double warm_up_s = 0;     ///< part of start_s: additional time of the first step after the start
  double first_step_s = 0;  ///< the first step, without the warm-up; 0 if another fault came before its end
  double under_way_s = 0;   ///< part of replay_s: the step in progress, which was cut short
  double total_s() const { return down_s + start_s + load_s + replay_s + planned_s + slower_s; }
};

struct SimulatedScenario {
  RunOutcome undisturbed, run;
  std::vector<SimulatedFault> faults;  ///< in time order
};

/// The run of `ranks` ranks with the scenario's events. `run` has its steps, step time, saves and the phases of a
/// recovery, as measured or assumed. The scenario's policy says how nodes are replaced:
///   - `restart`: a lost node is available again at once.
///   - `spare`: a standby node replaces it.
///   - `shrink`: the run restarts with fewer equal parts of the nodes, at least min_replicas.
///   - `without_replica`: the other replicas (run.tolerance.replicas) detect, decide and repeat the step in progress,
///     in whole microbatches (run.tolerance.microbatches). The lost replica starts while they train. It joins at the
///     start of a step: at once if its node lives, else when the event is over.
///   - otherwise the run waits until the event is over.
/// The times in run.tolerance are ignored. Throws Error{usage} as add_scenario, for events at a rate, for ranks that do
/// not fill whole nodes, and for replicas that are not whole nodes.
SimulatedScenario simulate_scenario(const Scenario& scenario, const RunScenario& run, std::int64_t ranks);

}  // namespace wt
