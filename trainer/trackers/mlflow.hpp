// A run in MLflow. It stays the same run after a restart: its id is stored in the run's folder (mlflow.json), or found
// by a tag if that is lost. Repeated steps are logged again, and MLflow shows the last value of a step.
#pragma once

#include "configs/files/loggers.hpp"
#include "trainer/trackers/mlflow_client.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

class MlflowTracker : public Tracker {
 public:
  /// `spec` must have an address (mlflow_in_environment). `start`: a unique name of this start.
  MlflowTracker(const MlflowSpec& spec, MlflowLogin login, std::string start, double call_s = kTrackerCall_s);
  std::string name() const override { return "mlflow at " + client_.tracking_uri(); }
  void begin(const TrackedRun& run) override;
  void log(std::span<const TrackedStep> steps) override;
  void end(TrackedEnd how) override;
  /// Alternative to the calls above: logs to the existing run of this folder without changing its status. Throws
  /// TrackerRefused where the server has no such run.
  void add(const TrackedRun& run, std::span<const TrackedStep> steps);

 private:
  using Map = std::map<std::string, std::string>;
  bool look_up_experiment();
  void find_experiment();
  bool look_up(const std::string& run_id);
  bool resume_run(const std::string& run_id);
  std::string known_id(const TrackedRun& run) const;
  std::string search(const std::string& tag, const std::string& value);
  void create(const TrackedRun& run);
  void log_parameters(const TrackedRun& run);
  void store_run_file(const TrackedRun& run);

  MlflowSpec spec_;
  std::string start_;
  MlflowClient client_;
  std::string experiment_id_, run_id_;
  std::string artifact_uri_;      ///< of the run
  bool asked_to_create_ = false;  ///< the server may have created the run although its answer was lost
  Map parameters_;                ///< already in the run
};

/// Takes address and experiment name from the environment, where the run file lacks them. Throws Error{usage} without
/// an address.
MlflowSpec mlflow_in_environment(MlflowSpec spec);

/// The parameters that the run lacks, within MLflow's limits: other characters of a key become '_'; a value longer than
/// 6,000 bytes is cut, and says by how much; a changed value gets a key that includes the step.
std::vector<std::pair<std::string, std::string>> mlflow_parameters(
    const std::vector<std::pair<std::string, std::string>>& wanted, const std::map<std::string, std::string>& there,
    std::int64_t done);

}  // namespace wt
