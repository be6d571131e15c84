// Sends scores of a finished run's weights to the trackers of its steps.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

/// To MLflow, into the run of this folder; to TensorBoard, into a folder RUN_evaluation next to the run's, replacing
/// scores of the same step. Not to Prometheus, which shows running jobs. Each tracker is tried once. Returns a line for
/// each: what was logged, or why nothing was. Throws as check_loggers does.
std::vector<std::string> track_scores(const RunSpec& run, const std::filesystem::path& folder, std::int64_t step,
                                      const std::vector<std::pair<std::string, double>>& scores);

}  // namespace wt
