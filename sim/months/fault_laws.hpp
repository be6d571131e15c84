// The laws by which a trace strikes: from a failure preset, from a study's maintenance and slow nodes, and from the
// events of a fault scenario.
#pragma once
#include <vector>

#include "configs/files/failures.hpp"
#include "configs/files/scenario.hpp"
#include "sim/months/fault_trace.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

struct FaultLaws {
  std::vector<StrikeLaw> laws;
  std::vector<GivenStrike> given;
  std::vector<std::size_t> event_of;  ///< of each law of a scenario: its event, from 0
};

/// Mean time between the strikes of one whole entity, seconds, where the domain's are so many per 1000 node-days of the
/// job: those of a rack are 1/1000 of its nodes' days apart. 0 = never. Throws Error{usage} as EntityTree::count.
double entity_mean_s(const EntityTree& tree, FaultDomain domain, double per_1000_node_days);

/// The preset's failures and planned stops; times between failures times `mtbf`.
FaultLaws preset_laws(const FailurePreset& preset, const EntityTree& tree, double mtbf = 1);
/// The run's maintenance windows, and its slow nodes as often as its StragglerLaw says, one node at a time.
void add_run_laws(const RunScenario& run, const EntityTree& tree, FaultLaws& laws);
/// The scenario's events. One at a step strikes in the middle of that step of an undisturbed run, in a later generation
/// of the run that recovered from the strike before, once the save before it is whole where it waits for that; one at
/// restart or reload in the middle of that. A damaged file of storage is a save less, a full disk or a file that is too
/// large a failure with one save less. Corrupted numbers are a silent error, or a failure where a gradient is not
/// finite. Throws Error{usage}, naming file and event, for other events of the storage than damage and for a trace file
/// that cannot be read.
void add_scenario(const Scenario& scenario, const RunScenario& run, const EntityTree& tree, FaultLaws& laws);

}  // namespace wt
