// Reads the result files of evaluation harnesses.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.hpp"

namespace wt {

/// Reads lm-eval's results_*.json (0.4: "results" by task, values by "metric,filter"), or an object with Composer's
/// metrics as LLM Foundry logs them ("metrics/copa/0-shot/InContextLearningMultipleChoiceAccuracy": 0.61). Throws
/// Error{usage} if it is neither, has no score, or has a score that is not a number.
Evaluation evaluation_from_results(const nlohmann::json& document, const std::string& origin);

/// Merges several files of one harness and one model. Throws Error{usage} as above, if harnesses or models differ, and
/// if a score is in two files.
Evaluation read_results(const std::vector<std::filesystem::path>& files);

}  // namespace wt
