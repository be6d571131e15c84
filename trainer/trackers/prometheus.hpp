// A file for the textfile collector of Prometheus' node_exporter, with the last step's values under windtunnel_ names.
// It is removed when the run ends, so that old values are not taken for new ones.
#pragma once
#include "configs/files/loggers.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

class PrometheusTracker : public Tracker {
 public:
  explicit PrometheusTracker(const PrometheusSpec& spec) : folder_(spec.textfile_directory) {}
  std::string name() const override { return "prometheus in " + folder_.string(); }
  void begin(const TrackedRun& run) override;
  void log(std::span<const TrackedStep> steps) override;
  void end(TrackedEnd how) override;

 private:
  std::filesystem::path folder_, file_;
  std::string run_;
};

/// Text in Prometheus' exposition format 0.0.4: HELP, TYPE and one sample per metric, without timestamps.
std::string prometheus_text(const std::string& run, const TrackedStep& step);

}  // namespace wt
