// The demonstration: the whole loop on this machine, measured -> calibrated -> predicted -> compared -> planned ->
// proved.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "planner/experiments/comparison.hpp"
#include "planner/experiments/drill.hpp"
#include "planner/plan/plan.hpp"
#include "sim/cost/fit/calibrate.hpp"

namespace wt {

struct DemoOptions {
  std::filesystem::path folder = "out/demo";
  std::string study = "dbrx-3072-h100";
  std::string faults = "kill-rank";
};

struct DemoResult {
  double first_loss = 0, last_loss = 0;
  double tokens_per_s = 0;
  std::vector<RunComparison> comparisons;  ///< the calibration run first
  DrillResult drill;
  std::vector<std::filesystem::path> files;
  std::string summary;  ///< one paragraph

  /// Every prediction within its bars, every recovery exact.
  bool passed() const { return broken_bars(comparisons).empty() && drill.passed(); }
};

/// `stage(number, name, result)` is called as each stage ends. Throws what the stages throw.
DemoResult run_demo(const DemoOptions& options,
                    const std::function<void(int number, const std::string& name, const std::string& result)>& stage);

/// The runs that the demo predicts without having seen them: another mesh, another width and depth, one rank.
std::vector<RunSpec> unseen_runs(const RunSpec& calibration);

}  // namespace wt
