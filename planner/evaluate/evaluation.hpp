// Scores of a model from an evaluation harness: per task, and averaged by category. Stored as evaluation.json in the
// folder of the run or export, where reports look for it.
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

/// One metric of one task. Harnesses use equal names for different scores, so scores are only comparable within one
/// harness (Evaluation::harness).
struct TaskScore {
  std::string task;
  std::string subset;  ///< a separately scored part of the task; "" = the whole task
  std::string metric;  ///< the harness's name: "acc", "InContextLearningMultipleChoiceAccuracy"
  std::string filter;  ///< how answers were extracted from the output; "" or "none" = not at all
  std::optional<std::int64_t> shots;
  double value = 0;
  std::optional<double> standard_error;
  std::optional<std::int64_t> samples;
  std::optional<bool> higher_is_better;

  /// "acc", or "exact_match,strict-match" with a filter.
  std::string metric_and_filter() const;
  /// "arc_easy", "mmlu/anatomy".
  std::string name() const { return subset.empty() ? task : task + "/" + subset; }
};

/// A benchmark of a category, with its raw and its rescaled score.
struct BenchmarkScore {
  std::string name, metric;
  std::int64_t shots = 0;
  double baseline = 0;  ///< score of random answers
  double value = 0;     ///< as the harness reports it
  double score = 0;     ///< less the baseline and rescaled, as the gauntlet says
  double weight = 1;
};

struct CategoryScore {
  std::string name;
  std::optional<double> score;  ///< empty: benchmarks are missing
  std::vector<BenchmarkScore> benchmarks;
  std::vector<std::string> missing;  ///< "copa, 0-shot"
};

struct NamedAverage {
  std::string name;
  std::optional<double> score;  ///< over the categories that have a score; empty: none has
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
  std::string version;             ///< of the harness; "" = unknown
  std::string model;               ///< the harness's name for it
  std::vector<std::string> files;  ///< sources of the scores
  std::vector<TaskScore> scores;   ///< ordered by task, subset, metric
  std::optional<GauntletScores> gauntlet;
};

/// "lm-eval", "LLM Foundry".
std::string to_string(Evaluation::Harness harness);

nlohmann::json evaluation_json(const Evaluation& evaluation);
/// Throws Error{usage} naming origin and pointer if the document is not in the format of evaluation_json().
Evaluation evaluation_from_json(const nlohmann::json& document, const std::string& origin);

/// The evaluation stored in a folder; empty if there is none. Throws as evaluation_from_json().
std::optional<Evaluation> kept_evaluation(const std::filesystem::path& folder);

}  // namespace wt
