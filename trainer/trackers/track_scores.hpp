// Scores that a run's weights got after it was over, shown where its steps are.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

/// To MLflow, into the run of this folder, and to TensorBoard, into a folder RUN_evaluation beside the run's own, where
/// scores of the same step are replaced. Prometheus shows what runs now, and gets none. Each tracker is tried once.
/// Returns a line for each: what was logged, or why nothing was. Throws what check_loggers throws.
std::vector<std::string> track_scores(const RunSpec& run, const std::filesystem::path& folder, std::int64_t step,
                                      const std::vector<std::pair<std::string, double>>& scores);

}  // namespace wt
