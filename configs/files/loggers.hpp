// Trackers that a run sends its metrics to: the key `loggers` of a run file, with LLM Foundry's names. No key holds a
// secret: MLflow's login is read from the environment (trainer/trackers/mlflow_login.hpp).
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

struct MlflowSpec {
  std::string tracking_uri;                 ///< http:// or https:// and a host; empty: MLFLOW_TRACKING_URI
  std::string experiment_name;              ///< empty: MLFLOW_EXPERIMENT_NAME, or Composer's my-mlflow-experiment
  std::string run_name;                     ///< empty: the name of the run file
  std::map<std::string, std::string> tags;  ///< set on the MLflow run
  friend bool operator==(const MlflowSpec&, const MlflowSpec&) = default;
};

struct TensorboardSpec {
  std::filesystem::path log_dir = "tensorboard_logs";  ///< each run writes to a subfolder with its name
  friend bool operator==(const TensorboardSpec&, const TensorboardSpec&) = default;
};

struct PrometheusSpec {
  /// The folder that node_exporter reads (--collector.textfile.directory); the default is Debian's.
  std::filesystem::path textfile_directory = "/var/lib/prometheus/node-exporter";
  friend bool operator==(const PrometheusSpec&, const PrometheusSpec&) = default;
};

struct LoggersSpec {
  std::optional<MlflowSpec> mlflow;
  std::optional<TensorboardSpec> tensorboard;
  std::optional<PrometheusSpec> prometheus;
  bool any() const { return mlflow || tensorboard || prometheus; }
  friend bool operator==(const LoggersSpec&, const LoggersSpec&) = default;
};

/// Throws Error{usage} with `where` for an address that is no server's, and for one that contains a user or a password,
/// which the message does not repeat.
void check_tracking_uri(const std::string& uri, const std::string& where);
/// Reads the optional key `loggers`. Throws Error{usage}: unknown loggers and keys, addresses as above.
LoggersSpec read_loggers(YamlMap& map);
/// Writes the key for read_loggers; nothing where there are no loggers.
void loggers_to_yaml(const LoggersSpec& spec, YAML::Emitter& out);

}  // namespace wt
