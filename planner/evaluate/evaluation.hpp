// What an evaluation harness said of a model, whichever it was: scores of tasks, and averages of categories over them.
// Kept as evaluation.json in the folder of the run or of the export, where reports look for it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace wt {

inline constexpr const char* kEvaluationSchema = "windtunnel.evaluation/1";
inline constexpr const char* kEvaluationFile = "evaluation.json";

/// One metric of one task. Harnesses score tasks in different ways under equal names, so that a score never leaves its
/// harness (Evaluation::harness).
struct TaskScore {
  std::string task;
  std::string subset;  ///< a part of the task that was scored by itself; "" = all of it
  std::string metric;  ///< in the harness's own words: "acc", "InContextLearningMultipleChoiceAccuracy"
  std::string filter;  ///< how answers were cut out of what the model wrote; "" or "none" = not at all
  std::optional<std::int64_t> shots;
  double value = 0;
  std::optional<double> standard_error;
  std::optional<std::int64_t> samples;
  std::optional<bool> higher_is_better;

  /// "acc", or "exact_match,strict-match" with a filter.
  std::string metric_and_filter() const;
  /// "arc_easy", "mmlu/anatomy"
  std::string name() const { return subset.empty() ? task : task + "/" + subset; }
};

/// A benchmark in its category: what was measured and what it counts.
struct BenchmarkScore {
  std::string name, metric;
  std::int64_t shots = 0;
  double baseline = 0;  ///< of random answers
  double value = 0;     ///< as the harness said it
  double score = 0;     ///< less the baseline, rescaled; as the gauntlet asks for
  double weight = 1;
};

struct CategoryScore {
  std::string name;
  std::optional<double> score;  ///< none: benchmarks are missing
  std::vector<BenchmarkScore> benchmarks;
  std::vector<std::string> missing;  ///< "copa, 0-shot"
};

struct NamedAverage {
  std::string name;
  std::optional<double> score;  ///< of those categories that have one; none: none has
  std::vector<std::string> categories, missing;
};

struct GauntletScores {
  std::string weighting;
  std::vector<CategoryScore> categories;
  std::vector<NamedAverage> averages;
};

struct Evaluation {
  enum class Harness { lm_eval, composer };
  Harness harness = Harness::lm_eval;
  std::string version;             ///< of the harness; "" = it does not say
  std::string model;               ///< as the harness names it
  std::vector<std::string> files;  ///< that the scores are from
  std::vector<TaskScore> scores;   ///< by task, subset, metric
  std::optional<GauntletScores> gauntlet;
};

/// "lm-eval", "LLM Foundry"
std::string to_string(Evaluation::Harness harness);

nlohmann::json evaluation_json(const Evaluation& evaluation);
/// Throws Error{usage} naming origin and pointer where the document is not what evaluation_json() makes.
Evaluation evaluation_from_json(const nlohmann::json& document, const std::string& origin);

/// The evaluation that is kept in a folder; none = there is none. Throws as above.
std::optional<Evaluation> kept_evaluation(const std::filesystem::path& folder);

}  // namespace wt
