// The demonstration: the whole loop on this machine. A small model is trained and measured, a machine model calibrated,
// other runs predicted and compared, a large run planned, and recovery from faults proved.
// planner/cli/demo/demo_report.hpp shows it.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/gate/gate.hpp"
#include "configs/base/error.hpp"
#include "planner/experiments/demo_judgement.hpp"
#include "planner/experiments/drill.hpp"
#include "planner/plan/plan_details.hpp"
#include "sim/cost/calibrate/calibrate.hpp"

namespace wt {

struct DemoOptions {
  std::filesystem::path folder = "out/demo";                             ///< for everything that the demo writes
  std::string study = "dbrx-3072-h100";                                  ///< that is planned
  std::vector<std::string> faults{"kill", "kill-in-save", "node-lost"};  ///< of the drill
};

enum class DemoStage { data, train, bench, calibrate, simulate, plan, drill, gate };  ///< in this order

/// A stage fills its own part; parts of later stages are empty until then.
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
  /// Of the command: 0, or 1 where it did not pass.
  int exit_status() const { return passed() ? 0 : static_cast<int>(Code::finding); }
};

/// `ended` is called as each stage ends. Throws Error{usage} before any work where the folder holds what no demo wrote,
/// Error{finding} where training does not lower the loss, and what the stages throw.
DemoResult run_demo(const DemoOptions& options, const std::function<void(DemoStage, const DemoResult&)>& ended);

/// The runs that the demo predicts without having seen them: another mesh, data parallelism alone, another width and
/// depth.
std::vector<RunSpec> unseen_runs(const RunSpec& calibration);

}  // namespace wt
