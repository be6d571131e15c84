// What must hold after every recovery, beside the undisturbed run and without one.
#pragma once
#include <filesystem>

#include "planner/experiments/drill.hpp"

namespace wt {

/// Losses, samples and state beside the undisturbed run's, as the scenario's expectation says: bit by bit, as close as
/// layouts are, changed by the strike, or samples alone.
void compare_with_undisturbed(const std::filesystem::path& undisturbed, const std::filesystem::path& place,
                              const Expectation& expect, DrillCase& out);
/// Every step that was done twice gave the same both times; samples come in order, each once.
void check_replays(const std::filesystem::path& place, std::int64_t steps, const Expectation& expect, DrillCase& out);
/// No step that counts was written by ranks that others had followed; what was done again is what lay between the step
/// that ranks went on from and the last one of those before them.
void check_generations(const std::filesystem::path& place, DrillCase& out);
/// Nodes keep no copies of a run that is over and saved.
void check_memory_given_back(const std::filesystem::path& place, DrillCase& out);
/// Phases follow one another; no more restarts than strikes; restarts, relaunches, the step and level gone on from,
/// excluded nodes and times as expected; a node that was not struck is not excluded.
void check_recoveries(const std::filesystem::path& place, const Scenario& scenario, DrillCase& out);
/// No process of the run is left behind, and no file that is half written.
void check_nothing_left(const std::filesystem::path& place, DrillCase& out);

}  // namespace wt
