// The demonstration: the whole loop on this machine. A small model is trained and measured, a machine model calibrated,
// other runs predicted and compared, a large run planned, and recovery from faults proved.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "configs/spec/support/error.hpp"
#include "planner/experiments/comparison.hpp"
#include "planner/experiments/drill.hpp"
#include "planner/plan/plan.hpp"
#include "sim/cost/fit/calibrate.hpp"

namespace wt {

struct DemoOptions {
  std::filesystem::path folder = "out/demo";  ///< for everything that the demo writes
  std::string study = "dbrx-3072-h100";       ///< that is planned
  std::string faults = "kill-rank";           ///< of the drill
};

struct DemoResult {
  double first_loss = 0, last_loss = 0;    ///< of the calibration run
  double tokens_per_s = 0;                 ///< of the same
  std::vector<RunComparison> comparisons;  ///< the calibration run first
  DrillResult drill;
  std::vector<std::filesystem::path> files;
  std::string summary;  ///< one paragraph

  /// At least one unseen run was predicted, every such prediction is within its bars, and every recovery was exact.
  bool passed() const;
  /// Of the command: 0, or 1 where it did not pass.
  int exit_status() const { return passed() ? 0 : static_cast<int>(Code::finding); }
};

/// `stage(number, name, result)` is called as each of the nine stages ends. Throws Error{usage} before any work where
/// the folder holds what no demo wrote, Error{finding} where training does not lower the loss, and what the stages
/// throw.
DemoResult run_demo(const DemoOptions& options,
                    const std::function<void(int number, const std::string& name, const std::string& result)>& stage);

/// The runs that the demo predicts without having seen them: another mesh, data parallelism alone, another width and
/// depth.
std::vector<RunSpec> unseen_runs(const RunSpec& calibration);

}  // namespace wt
