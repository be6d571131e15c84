// Compares a trained run with its simulation on the machine model.
#pragma once
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/program/timeline.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

/// This machine as a cluster: its cores shared by the run's ranks.
ClusterSpec this_machine(std::int64_t ranks);

/// One rank's figures; bytes and seconds.
struct RankFigures {
  double step_s = 0, exposed_s = 0, peak_bytes = 0;
};
double mean_exposed_s(const std::vector<RankFigures>& ranks);

struct RunComparison {
  std::string name;
  std::string layout;
  bool calibrated_on = false;  ///< the machine model was fitted on this run
  std::int64_t measured_steps = 0;
  double cores_used_by_others = 0;  ///< by other programs, during the measurement
  std::vector<RankFigures> predicted,
      measured;  ///< by rank: median over the measured steps (predicted: the last kRecordedSteps), highest peak
  double predicted_low_s = 0, predicted_high_s = 0;
  std::vector<StepTimeline> predicted_timelines, measured_timelines;  ///< of the same step
  std::array<double, 4> evidence_s{};                                 ///< of the predicted step, by Evidence
  bool same_ops = false;  ///< both timelines have the same op ids in the same order, on every rank

  double predicted_step_s() const;  ///< slowest rank
  double measured_step_s() const;
  /// Signed, relative to the measured step time.
  double step_error() const;
  /// Mean over ranks of predicted minus measured exposed communication, as a share of the measured step time.
  double exposed_error() const;
  /// Largest over ranks, signed, relative to the measured peak.
  double peak_error() const;
};

/// `folder`: output of windtunnel train for this run. Uses the routing recorded there. Throws as the simulator, and
/// Error{usage} if a file is missing.
RunComparison compare_run(const RunSpec& run, const std::filesystem::path& folder, const ClusterSpec& cluster,
                          const OpCost& cost);

/// Largest errors for a run without calibration on it: step time, exposed communication (share of the step), peak
/// memory.
inline constexpr double kStepErrorBar = 0.25, kExposedErrorBar = 0.15, kPeakErrorBar = 0.05;

/// A figure of a prediction beside its bar.
struct HeldToBar {
  const char* what;
  double error, bar;
  bool timed;  ///< other programs on the machine disturb it
  /// NaN is within no bar.
  bool broken() const { return !(std::abs(error) <= bar); }
};
std::vector<HeldToBar> held_to_bars(const RunComparison& comparison);

nlohmann::json to_json(const RunComparison& comparison);

}  // namespace wt
