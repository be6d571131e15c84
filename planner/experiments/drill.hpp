// The recovery drill: a run is trained undisturbed, then again with the faults of a scenario, which really strike its
// ranks. It proves that every fault struck, that the recovery was the expected one, and that nothing was lost.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/files/measured_recovery.hpp"
#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "sim/months/simulate_scenario.hpp"
#include "trainer/run_folder/recovery_times.hpp"

namespace wt {

struct DrillCase {
  std::string name;
  std::vector<std::string> struck;  ///< what the proofs say, one sentence a strike
  std::vector<DrillRestart> restarts;
  std::int64_t relaunches = 0;                                ///< times that train was called again
  std::int64_t steps_lost = 0;                                ///< done and done again
  Expectation::State compared = Expectation::State::bitwise;  ///< how; what was not compared is not equal
  bool losses_equal = false, samples_equal = false, parameters_equal = false, optimizer_equal = false;
  std::vector<std::string> differences;  ///< all that is not as it must be
  /// What months say of it by the times of the other scenarios; none where it did not recover, no other did, or months
  /// do not know its events.
  std::optional<SimulatedScenario> predicted;
  bool passed() const { return !struck.empty() && differences.empty(); }
};

struct DrillResult {
  std::vector<DrillCase> cases;
  std::vector<MeasuredRecovery> measured;  ///< of each run that recovered
  bool passed() const;
};

struct DrillInput {
  Scenario scenario;
  RunSpec run;
  bool drawn = false;  ///< one of many: its folder is removed when it has passed
};

/// A file or a preset of configs/faults, and the run that it names. Throws Error{usage}.
DrillInput read_drill_input(const std::string& name_or_file);

/// Trains in `folder`, which it takes for its own (output_folder.hpp): one subfolder a scenario, and one a run for its
/// undisturbed training. What recoveries took is written to recovery/RUN.yaml. `said` is told what goes on. Throws
/// Error{usage} for a folder that holds what no drill wrote and for a scenario that cannot happen in its run,
/// Error{runtime} when the undisturbed training fails.
DrillResult run_drill(const std::vector<DrillInput>& inputs, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said);

nlohmann::json to_json(const DrillResult& result);

}  // namespace wt
