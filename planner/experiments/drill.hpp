// The recovery drill: trains a run undisturbed, then again with a scenario's faults injected into its ranks. Proves
// that every fault happened, that recovery went as expected, and that nothing was lost.
#pragma once
#include <fmt/core.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/measured_recovery.hpp"
#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "sim/months/simulate_scenario.hpp"
#include "trainer/run_folder/recovery_times.hpp"

namespace wt {

struct DrillCase {
  std::string name;
  std::vector<std::string> proofs;  ///< one sentence for each proved fault
  std::vector<DrillRestart> restarts;
  std::int64_t relaunches = 0;  ///< calls of train after the first
  std::int64_t steps_lost = 0;  ///< completed steps that were repeated
  /// The kind of comparison; what was not compared counts as not equal.
  Expectation::State compared = Expectation::State::bitwise;
  bool losses_equal = false, samples_equal = false, parameters_equal = false, optimizer_equal = false;
  std::vector<std::string> differences;  ///< everything that is not as expected
  template <typename... Args>
  void differs(fmt::format_string<Args...> format, Args&&... args) {
    differences.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  /// The simulated scenario with the times of the other cases. Empty if the case did not recover, if no other did, or
  /// if simulated months do not know its events.
  std::optional<SimulatedScenario> predicted;
  bool passed() const { return !proofs.empty() && differences.empty(); }
};

struct DrillResult {
  std::vector<DrillCase> cases;
  std::vector<MeasuredRecovery> measured;  ///< for each run that recovered
  bool passed() const;
};

struct DrillInput {
  Scenario scenario;
  RunSpec run;
  bool drawn = false;  ///< drawn at random: its folder is removed when it has passed
};

/// Reads a file or a preset of configs/faults, and the run that it names. Throws Error{usage}.
DrillInput read_drill_input(const std::string& name_or_file);

/// Trains in `folder`, which becomes its own (output_folder.hpp): one subfolder per scenario, and one per run for the
/// undisturbed training. Writes the measured recovery times to recovery/RUN.yaml. Reports progress to `said`. Throws
/// Error{usage} if the folder holds other files, and for a scenario that cannot happen in its run; Error{runtime} if
/// the undisturbed training fails.
DrillResult run_drill(const std::vector<DrillInput>& inputs, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said);

nlohmann::json to_json(const DrillResult& result);

}  // namespace wt
