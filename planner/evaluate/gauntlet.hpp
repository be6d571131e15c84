// LLM Foundry's Gauntlet as arithmetic over scores: benchmarks less what random answers get, averaged in categories,
// categories averaged under names. The same as llm-foundry 0.22.0's EvalGauntlet, but for two things: an average that
// names no category is an error, and one without any score has none (there: 0).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.hpp"

namespace wt {

class YamlMap;

struct GauntletBenchmark {
  std::string name;
  std::int64_t shots = 0;
  double baseline = 0;  ///< [0, 1): what random answers get
  std::string metric;   ///< of lm-eval: "acc_norm", "exact_match,strict-match"; "" = Foundry's accuracies
  std::optional<std::int64_t> samples;  ///< where the results do not say how many
};

struct GauntletSpec {
  enum class Weighting {
    equal,           ///< EQUAL: 1
    sample_size,     ///< SAMPLE_SZ: samples of the benchmark
    log_sample_size  ///< LOG_SAMPLE_SZ: max(log2 of them, 1)
  } weighting = Weighting::equal;
  bool subtract_baseline = true;  ///< accuracy - baseline
  bool rescale = true;            ///< ... / (1 - baseline): 1 is all right, 0 is random
  struct Category {
    std::string name;
    std::vector<GauntletBenchmark> benchmarks;
  };
  std::vector<Category> categories;
  struct Average {
    std::string name;
    std::vector<std::string> categories;
  };
  std::vector<Average> averages;  ///< one over all categories where the file names none
};

/// Foundry's map `eval_gauntlet`, with two keys of ours a benchmark: metric and samples. Throws Error{usage}.
GauntletSpec read_gauntlet(YamlMap at);

/// A category whose benchmarks are not all there has no score. Throws Error{usage}: no metric is said for scores of
/// lm-eval, a benchmark without that metric, or whose number of samples is needed as its weight and not known.
GauntletScores gauntlet_scores(const GauntletSpec& gauntlet, const Evaluation& evaluation);

}  // namespace wt
