// Compares a run with its plan: differences in step time, communication, memory and goodput, by cause.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/health/training.hpp"

namespace wt {

/// A step according to plan.json. Seconds of the critical rank; bytes of the fullest rank, at p99 routing.
struct PlannedRun {
  std::string name;
  std::int64_t gpus = 0;
  double step_s = 0, low_s = 0, high_s = 0;  ///< with its 80 % interval
  std::optional<double> mfu, tokens_per_s;
  double exposed_communication_s = 0;
  double peak_bytes = 0;
  double goodput = 0;    ///< productive time over wall time
  double imbalance = 1;  ///< rows of the most loaded expert rank over the mean, averaged over steps
  double experts_s = 0;  ///< computation of experts in a step, proportional to the imbalance
  double load_batch_s = 0;
};

/// Throws Error{usage} for a missing or damaged file or another schema.
PlannedRun read_planned_run(const std::filesystem::path& plan_json);

/// The same figures for a run, as far as its files have them. Medians over the last `window` steps.
struct ObservedRun {
  double step_s = 0;
  std::optional<double> exposed_communication_s, peak_bytes, imbalance;
  std::optional<double> load_batch_s;  ///< exposed; from timeline.json, which a run writes at its end
  double goodput = 0;                  ///< time of the steps that count over wall time since the first began
};

/// Empty below `window` steps. Throws Error{usage} for a damaged timeline.json.
std::optional<ObservedRun> observe_run(const TrainingObservation& run, const std::filesystem::path& run_folder,
                                       std::size_t window);

/// One figure of both. Empty `run` = UNKNOWN.
struct DriftRow {
  std::string what;
  double plan = 0;
  std::optional<double> run;
};

/// Seconds per step by which the run is behind the plan; negative = ahead. The parts of the step sum to its difference.
/// Network and input are measured, routing is derived from the loads, computation is the rest. Faults and saves are
/// extra. An empty part is UNKNOWN, and included in the computation.
struct DriftParts {
  double step_s = 0;  ///< network + routing + input + computation
  std::optional<double> network_s, routing_s, input_s;
  double computation_s = 0;
  double faults_s = 0;
};

struct PlanDrift {
  PlannedRun plan;
  ObservedRun run;
  bool inside = false;  ///< the step is within the plan's 80 % interval
  DriftParts parts;
};
PlanDrift plan_drift(const PlannedRun& plan, const ObservedRun& run);
/// Step time, exposed communication, largest expert load, input [s], memory [bytes], goodput.
std::vector<DriftRow> drift_rows(const PlanDrift& drift);

nlohmann::json to_json(const PlanDrift& drift);

}  // namespace wt
