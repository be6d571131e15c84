// The laws and scheduled faults of a trace. They come from a failure preset, from a study's maintenance and slow nodes,
// or from the events of a fault scenario.
#pragma once
#include <vector>

#include "configs/files/failures.hpp"
#include "configs/files/scenario.hpp"
#include "sim/months/fault_trace.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

struct FaultLaws {
  std::vector<FaultLaw> laws;
  std::vector<ScheduledFault> scheduled;
  std::vector<std::size_t> event_of;  ///< index of the scenario event that each law comes from
};

/// Mean seconds between faults of one whole entity, given the domain's fault rate per 1000 node-days of the job. 0 =
/// never. A larger entity fails more often, in proportion to its nodes. Throws Error{usage} as EntityTree::count.
double entity_mean_s(const EntityTree& tree, FaultDomain domain, double per_1000_node_days);

/// The preset's failures and planned stops. `mtbf` multiplies the mean times between failures.
FaultLaws preset_laws(const FailurePreset& preset, const EntityTree& tree, double mtbf = 1);
/// Adds the run's maintenance windows, and its slow nodes at the rate of its StragglerLaw, one node at a time.
void add_run_laws(const RunScenario& run, const EntityTree& tree, FaultLaws& laws);
/// Adds the scenario's events. When they happen:
///   - at a step: in the middle of that step of the undisturbed run. In a later generation, of the run that recovered
///     from the fault before. An event that waits for a save comes once the save before that step is complete.
///   - at restart or reload: halfway through it.
/// How they are modelled:
///   - a damaged file in storage loses the newest save.
///   - a full disk or a file that is too large is a failure that also loses the newest save.
///   - corrupted numbers are a silent error, or a failure where they make the gradient norm not finite.
/// Throws Error{usage}, naming file and event, for storage events other than damage, and for a trace file that cannot
/// be read.
void add_scenario(const Scenario& scenario, const RunScenario& run, const EntityTree& tree, FaultLaws& laws);

}  // namespace wt
