// Event files for TensorBoard, in a folder with the run's name. Each start writes its own file, whose first event tells
// readers which steps of earlier files are repeated.
#pragma once

#include "configs/files/loggers.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

class TensorboardTracker : public Tracker {
 public:
  explicit TensorboardTracker(const TensorboardSpec& spec) : log_dir_(spec.log_dir) {}
  std::string name() const override { return "tensorboard in " + log_dir_.string(); }
  void begin(const TrackedRun& run) override;
  void log(std::span<const TrackedStep> steps) override;
  void end(TrackedEnd how) override;

 private:
  void write(const std::string& records);

  std::filesystem::path log_dir_, file_;
  std::int64_t written_ = 0;  ///< bytes of complete records
};

}  // namespace wt
