// Proof that the faults of a drill struck: an injector that misses makes a green drill of nothing.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "planner/experiments/drill.hpp"

namespace wt {

/// One sentence for each strike that is proved, into `out.struck`; one for each that is not, and for each restart that
/// another rank is named for, into `out.differences`. A strike is proved by the ranks that it struck, which are those
/// of its domain, by what each of them left, and by the end of its generation. `place`: the output folder of the run
/// that was struck.
void prove_strikes(const Scenario& scenario, const RunSpec& run, const std::filesystem::path& place, DrillCase& out);

/// "kill of rank 1 at optimizer of step 6"
std::string event_text(const FaultEvent& event);

}  // namespace wt
