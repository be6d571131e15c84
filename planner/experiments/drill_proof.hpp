// Proves that the faults of a drill happened: if the injector misses, a drill passes without a test.
#pragma once
#include <filesystem>
#include <string>

#include "planner/experiments/drill.hpp"

namespace wt {

/// Appends one sentence to `out.proofs` for each proved fault. Appends one to `out.differences` for each that is not
/// proved, and for each restart that blames another rank. The proof of a fault: its ranks are those of the event's
/// domain, each left its traces, and the generation ended accordingly. `place`: output folder of the run.
void prove_faults(const Scenario& scenario, const RunSpec& run, const std::filesystem::path& place, DrillCase& out);

/// "kill of rank 1 at optimizer of step 6"
std::string event_text(const FaultEvent& event);

}  // namespace wt
