// A plan beside the run that was made from it: where its step time, communication, memory and goodput went.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/health/training.hpp"

namespace wt {

/// What plan.json says of a step. Seconds of the critical rank; bytes of the fullest rank, at p99 routing.
struct PlannedRun {
  std::string name;
  std::int64_t gpus = 0;
  double step_s = 0, low_s = 0, high_s = 0;  ///< with the 80 % interval
  std::optional<double> mfu, tokens_per_s;
  double exposed_communication_s = 0;
  double peak_bytes = 0;
  double goodput = 0;    ///< productive time over wall time
  double imbalance = 1;  ///< most loaded expert rank over the mean, the mean over steps
  double experts_s = 0;  ///< computation of experts in a step, which grows with the imbalance
  double load_batch_s = 0;
};

/// Throws Error{usage} for a missing or damaged file and another schema.
PlannedRun read_planned_run(const std::filesystem::path& plan_json);

/// The same of a run, as far as its files tell. Medians over its last `window` steps.
struct ObservedRun {
  double step_s = 0;
  std::optional<double> exposed_communication_s, peak_bytes, imbalance;
  std::optional<double> load_batch_s;  ///< exposed; from timeline.json, which a run writes at its end
  double goodput = 0;                  ///< seconds of the steps that count over wall time since the first began
};

/// None below `window` steps. Throws Error{usage} for a damaged timeline.json.
std::optional<ObservedRun> observe_run(const TrainingObservation& run, const std::filesystem::path& run_folder,
                                       std::size_t window);

/// A figure of both; `run` empty = UNKNOWN.
struct DriftRow {
  std::string what;
  double plan = 0;
  std::optional<double> run;
};

/// Seconds a step by which the run is behind the plan; negative where it is ahead. The parts of the step sum to its
/// difference: network and input are measured, routing is derived from the loads, computation is what remains. Faults
/// and saves come on top. Empty = UNKNOWN, and then in the computation.
struct DriftParts {
  double step_s = 0;  ///< network + routing + input + computation
  std::optional<double> network_s, routing_s, input_s;
  double computation_s = 0;
  double faults_s = 0;
};

struct PlanDrift {
  PlannedRun plan;
  ObservedRun run;
  bool inside = false;  ///< the step is in the plan's 80 % interval
  DriftParts parts;
};
PlanDrift plan_drift(const PlannedRun& plan, const ObservedRun& run);
/// Step time, exposed communication, largest expert load, input [s], memory [bytes], goodput.
std::vector<DriftRow> drift_rows(const PlanDrift& drift);

nlohmann::json to_json(const PlanDrift& drift);

}  // namespace wt
