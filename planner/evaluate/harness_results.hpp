// The files in which evaluation harnesses leave their scores.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.hpp"

namespace wt {

/// lm-eval's results_*.json (0.4: "results" by task, "metric,filter" by value), or one object of Composer's metrics as
/// LLM Foundry logs them ("metrics/copa/0-shot/InContextLearningMultipleChoiceAccuracy": 0.61). Throws Error{usage}
/// where it is neither, names no score, or a score is no number.
Evaluation evaluation_from_results(const nlohmann::json& document, const std::string& origin);

/// Several files of one harness and one model as one. Throws Error{usage} as above, and where harnesses or models
/// differ or a score is in two files.
Evaluation read_results(const std::vector<std::filesystem::path>& files);

}  // namespace wt
