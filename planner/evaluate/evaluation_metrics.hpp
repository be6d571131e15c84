// Names of scores in trackers.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "planner/evaluate/evaluation.hpp"

namespace wt {

/// LLM Foundry: Composer's names metrics/copa/0-shot/InContextLearningMultipleChoiceAccuracy (a subset comes before the
/// metric), and icl/metrics/eval_gauntlet/NAME for averages. lm-eval, whose scores mean something else under equal
/// names: lm_eval/arc_easy/0-shot/acc with acc_stderr, and lm_eval/eval_gauntlet/NAME. Averages without a score are
/// omitted.
std::vector<std::pair<std::string, double>> evaluation_metrics(const Evaluation& evaluation);

}  // namespace wt
