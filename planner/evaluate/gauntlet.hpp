// LLM Foundry's Gauntlet: benchmark scores less those of random answers, averaged in categories, and named averages of
// categories. Equal to EvalGauntlet in llm-foundry 0.22.0, with two exceptions: an average without categories is an
// error, and one without any score has none (there: 0).
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
  double baseline = 0;  ///< [0, 1): score of random answers
  std::string metric;   ///< lm-eval's name: "acc_norm", "exact_match,strict-match"; "" = Foundry's accuracies
  std::optional<std::int64_t> samples;  ///< used if the results have no number
};

struct GauntletSpec {
  enum class Weighting {
    equal,           ///< EQUAL: weight 1
    sample_size,     ///< SAMPLE_SZ: samples of the benchmark
    log_sample_size  ///< LOG_SAMPLE_SZ: max(log2 of the samples, 1)
  } weighting = Weighting::equal;
  bool subtract_baseline = true;  ///< accuracy - baseline
  bool rescale = true;            ///< then / (1 - baseline): 1 = all correct, 0 = random
  struct Category {
    std::string name;
    std::vector<GauntletBenchmark> benchmarks;
  };
  std::vector<Category> categories;
  struct Average {
    std::string name;
    std::vector<std::string> categories;
  };
  std::vector<Average> averages;  ///< if the file names none, one over all categories
};

/// Reads Foundry's map `eval_gauntlet`, with two additional keys per benchmark: metric and samples. Throws
/// Error{usage}.
GauntletSpec read_gauntlet(YamlMap at);

/// A category with missing benchmarks has no score. Throws Error{usage} for scores of lm-eval without a metric to use,
/// for a benchmark without that metric, and for an unknown number of samples that is needed as a weight.
GauntletScores gauntlet_scores(const GauntletSpec& gauntlet, const Evaluation& evaluation);

}  // namespace wt
