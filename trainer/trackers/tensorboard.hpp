// Event files for TensorBoard, in a folder of the run's name. A start writes a file of its own, whose first event tells
// readers which steps of earlier files are done again.
#pragma once
#include <fstream>

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
  std::int64_t written_ = 0;  ///< bytes that a reader may rely on
};

}  // namespace wt
