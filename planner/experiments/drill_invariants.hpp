// Checks after a drill, against the undisturbed run and independent of it.
#pragma once
#include <filesystem>

#include "planner/experiments/drill.hpp"

namespace wt {

/// Losses, samples and state beside the undisturbed run's, as the scenario's expectation says: bit by bit, as close as
/// layouts are, changed by the strike, or samples alone.
void compare_with_undisturbed(const std::filesystem::path& undisturbed, const std::filesystem::path& place,
                              const Expectation& expect, DrillCase& out);
/// Repeated steps gave the same results. Samples are in order, each once.
void check_replays(const std::filesystem::path& place, std::int64_t steps, const Expectation& expect, DrillCase& out);
/// No step that counts was written by ranks that later ranks had replaced. The repeated steps are those from the
/// resumed step to the last one of the previous ranks.
void check_generations(const std::filesystem::path& place, DrillCase& out);
/// Nodes hold no copies of a run that has ended and is saved.
void check_memory_given_back(const std::filesystem::path& place, DrillCase& out);
/// Phases are consecutive. There are no more restarts than faults. Restarts, relaunches, resumed step and level,
/// excluded nodes and times are as expected. Only nodes with faults are excluded.
void check_recoveries(const std::filesystem::path& place, const Scenario& scenario, DrillCase& out);
/// The run leaves no process and no incomplete file.
void check_nothing_left(const std::filesystem::path& place, DrillCase& out);

}  // namespace wt
