// A run in MLflow. After a restart it is the same run: its id is kept in the run's folder (mlflow.json), and if that is
// lost, found by a tag. Steps that are done again are logged again: MLflow shows the last value of a step.
#pragma once
#include <nlohmann/json.hpp>
#include <set>

#include "configs/files/loggers.hpp"
#include "trainer/trackers/mlflow_client.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

class MlflowTracker : public Tracker {
 public:
  /// `spec` with an address (mlflow_in_environment). `start`: tells this start from all others.
  MlflowTracker(const MlflowSpec& spec, MlflowLogin login, std::string start, double call_s = kTrackerCall_s);
  std::string name() const override { return "mlflow at " + client_.tracking_uri(); }
  void begin(const TrackedRun& run) override;
  void log(std::span<const TrackedStep> steps) override;
  void end(TrackedEnd how) override;
  /// Instead of the calls above: logs to the run of this folder, whatever its status, which stays. Throws
  /// TrackerRefused where the server has none.
  void add(const TrackedRun& run, std::span<const TrackedStep> steps);

 private:
  using Map = std::map<std::string, std::string>;
  bool look_up_experiment();
  void find_experiment();
  bool look_up(const std::string& run_id);
  bool take_up(const std::string& run_id);
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
  bool asked_to_create_ = false;  ///< the server may have done so without our hearing of it
  Map parameters_;                ///< that the run has
};

/// The address and the experiment's name from the environment, where the run file does not say them. Throws
/// Error{usage} where neither names an address.
MlflowSpec mlflow_in_environment(MlflowSpec spec);

/// What of the parameters the run has not, in MLflow's limits: other characters of a key become '_', a value longer
/// than 6,000 bytes ends with how much was cut; one that has changed gets a key that says after which step.
std::vector<std::pair<std::string, std::string>> mlflow_parameters(
    const std::vector<std::pair<std::string, std::string>>& wanted, const std::map<std::string, std::string>& there,
    std::int64_t done);

}  // namespace wt
