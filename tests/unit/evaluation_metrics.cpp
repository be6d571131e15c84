// Names under which scores are shown by trackers.
#include <catch2/catch.hpp>

#include "planner/evaluate/evaluation_metrics.hpp"

using namespace wt;

namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

TaskScore score_of(const std::string& task, const std::string& metric, double value) {
  TaskScore out;
  out.task = task, out.metric = metric, out.shots = 5, out.value = value;
  return out;
}

}  // namespace

TEST_CASE("scores of lm-eval never have Composer's names") {
  Evaluation evaluation;
  evaluation.scores = {score_of("arc", "acc", 0.5), score_of("gsm", "exact_match", 0.25)};
  evaluation.scores[0].standard_error = 0.125;
  evaluation.scores[1].filter = "strict", evaluation.scores[1].shots.reset();
  evaluation.gauntlet = GauntletScores{.weighting = "EQUAL",
                                       .categories = {{"reason", 0.5, {}, {}}, {"know", std::nullopt, {}, {}}},
                                       .averages = {{"core", 0.75, {}, {}}}};
  CHECK(evaluation_metrics(evaluation) == Metrics{{"lm_eval/arc/5-shot/acc", 0.5},
                                                  {"lm_eval/arc/5-shot/acc_stderr", 0.125},
                                                  {"lm_eval/gsm/exact_match,strict", 0.25},
                                                  {"lm_eval/eval_gauntlet/reason", 0.5},
                                                  {"lm_eval/eval_gauntlet/core", 0.75}});
}

TEST_CASE("scores of LLM Foundry have Composer's names") {
  Evaluation evaluation;
  evaluation.harness = Evaluation::Harness::composer;
  evaluation.scores = {score_of("jeopardy", "InContextLearningQAAccuracy", 0.5)};
  evaluation.scores[0].subset = "literature";
  evaluation.gauntlet = GauntletScores{.weighting = "EQUAL", .categories = {}, .averages = {{"core", 0.75, {}, {}}}};
  CHECK(evaluation_metrics(evaluation) ==
        Metrics{{"metrics/jeopardy/5-shot/literature/InContextLearningQAAccuracy", 0.5},
                {"icl/metrics/eval_gauntlet/core", 0.75}});
}
