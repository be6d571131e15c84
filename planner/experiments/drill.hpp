// The recovery drill: a run is trained undisturbed, then again with real faults (a rank killed in the middle of a step
// or of a checkpoint), and everything that can be compared is compared bit by bit.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/spec/fault.hpp"
#include "configs/spec/run.hpp"

namespace wt {

struct DrillCase {
  std::string name;
  std::string fault;  ///< as injected
  std::string cause;  ///< how the agent saw the rank end; "" when the fault never struck
  std::int64_t restarts = 0;
  std::int64_t resumed_after = 0;  ///< step of the checkpoint that the next generation took
  std::int64_t replayed = 0;       ///< steps done again
  double recovery_s = 0;  ///< from the agent's notice (5 ms after the death at most) to the first step done again
  bool losses_equal = false, samples_equal = false, parameters_equal = false, optimizer_equal = false;
  std::vector<std::string> differences;  ///< the first of each kind
  bool passed() const { return !cause.empty() && losses_equal && samples_equal && parameters_equal && optimizer_equal; }
};

struct DrillResult {
  std::string name;
  std::string run;
  std::int64_t steps = 0;
  std::vector<DrillCase> cases;
  bool passed() const;
};

/// Trains in `folder` (one subfolder a case), which it takes for its own (output_folder.hpp). `said` is told what goes
/// on. Throws Error{usage} for a folder that holds what no drill wrote and for a case that cannot happen in the run,
/// Error{runtime} when training itself fails.
DrillResult run_drill(const FaultSpec& faults, const RunSpec& run, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said);

nlohmann::json to_json(const DrillResult& result);

}  // namespace wt
