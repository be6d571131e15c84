// The demo: everything on this machine. Trains and measures a small model, calibrates a machine model, predicts other
// runs and compares them, plans a large run, and proves recovery from faults. planner/cli/demo/demo_report.hpp shows
// the result.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/gate/gate.hpp"
#include "configs/base/error.hpp"
#include "configs/files/profile.hpp"
#include "planner/experiments/comparison.hpp"
#include "planner/experiments/drill.hpp"
#include "planner/plan/plan_details.hpp"
#include "sim/cost/calibrate/calibrate.hpp"

namespace wt {

// What a demo's predictions are held to. Other programs on the machine take cores from its measurements: step times and
// exposed communication that they disturbed are named and not judged. Memory is judged always.

/// Of the machine's cores: others that take more may move a step by more than a fifth of its limit.
inline constexpr double kDisturbedShare = 0.05;

struct DemoJudgement {
  std::vector<std::string> broken;  ///< a line for every limit that a judged figure breaks
  std::vector<std::string>
      disturbed;  ///< a line for every run whose times are not judged: why, and how far off they are
};

/// Of the cores, those that other programs and the hypervisor took while the profile was measured; 0 = it does not say.
double cores_taken(const Profile& suites);

/// A prediction rests on the measurements that were calibrated on, `suites` and the run among the comparisons: where
/// these were disturbed, all times are.
DemoJudgement judge_demo(const std::vector<RunComparison>& comparisons, const Profile& suites, double cores);

struct DemoOptions {
  std::filesystem::path folder = "out/demo";                             ///< for all files of the demo
  std::string study = "dbrx-3072-h100";                                  ///< the study to plan
  std::vector<std::string> faults{"kill", "kill-in-save", "node-lost"};  ///< presets for the drill
};

enum class DemoStage { data, train, bench, calibrate, simulate, plan, drill, gate };  ///< in order

/// A stage sets its own part. Parts of later stages are empty.
struct DemoResult {
  RunSpec run;       ///< trained, measured and calibrated on
  std::string data;  ///< what it trains on, in words
  double first_loss = 0, last_loss = 0;
  double tokens_per_s = 0;
  Profile suites;                          ///< kernels, collectives and storage of this machine
  std::vector<ClassResidual> residuals;    ///< of the calibration
  std::vector<RunComparison> comparisons;  ///< the calibration run first
  PlanInputs inputs;                       ///< of the study
  Plan plan;
  PlanDetails details;  ///< of the plan
  DrillResult drill;
  GateResult gate;   ///< of this build against itself
  double cores = 0;  ///< of the machine

  /// The comparison to show in detail: the first that was not calibrated on.
  const RunComparison& shown() const { return comparisons.at(1); }
  DemoJudgement judgement() const { return judge_demo(comparisons, suites, cores); }
  /// At least one unseen run was predicted, every judged figure is within its bar, and every recovery was exact.
  bool passed() const;
  /// Exit status of the command: 0, or 1 if it did not pass.
  int exit_status() const { return passed() ? 0 : static_cast<int>(Code::finding); }
};

/// Calls `ended` at the end of each stage. Throws Error{usage} before any work if the folder holds other files,
/// Error{finding} if training does not lower the loss, and as the stages.
DemoResult run_demo(const DemoOptions& options, const std::function<void(DemoStage, const DemoResult&)>& ended);

/// Runs that the demo predicts without measurements of them: another mesh, pure data parallelism, another width and
/// depth.
std::vector<RunSpec> unseen_runs(const RunSpec& calibration);

}  // namespace wt
