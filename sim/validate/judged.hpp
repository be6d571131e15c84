// Predictions compared with measurements, and accuracy figures. Errors are fractions: predicted / measured - 1.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

/// Data that the estimator of a prediction was fitted without.
enum class LeftOut {
  group,   ///< all rows of the same Judged::group
  origin,  ///< all rows that Judged::origin published: harder
};

/// A prediction, or the reason for abstaining.
struct Forecast {
  std::optional<double> value;  ///< seconds, bytes, watts or joules, as the measurement
  double low = 0, high = 0;     ///< 80 % interval
  EvidenceShares evidence{};    ///< what the prediction rests on; sums to 1
  std::string reason;           ///< why no value is predicted
};

/// One measurement with the model's prediction and a naive one.
struct Judged {
  std::int64_t line = 0;                  ///< line number in the file
  std::string name;                       ///< of the measurement, for reports
  std::string group;                      ///< rows that are left out of a fit together
  std::string origin = {};                ///< who published it (Origins)
  std::string regime;                     ///< rows with similar errors; intervals come from them
  std::string choice = {};                ///< rows of one choice are alternatives; empty = not part of a choice
  std::string alternative = {};           ///< the row's name within its choice
  double measured = 0;                    ///< seconds, bytes, watts or joules, the same unit in all rows
  std::vector<std::string> assumed = {};  ///< properties that the source does not state and the forecast assumes
  Forecast forecast, baseline;
};

/// Figures over rows with a prediction. Without such rows, all but the counts are empty.
struct Accuracy {
  std::int64_t n = 0, abstained = 0, groups = 0, origins = 0;
  std::optional<double> mape, median_ape, p90_ape;  ///< mean, median and 90th percentile of |predicted / measured - 1|
  std::optional<double> bias;                       ///< median of predicted / measured - 1
  /// Rank correlation. With choices of at least three alternatives: a mean over choices of ten or more alternatives, or
  /// over all choices if there are none so large. Without such choices: over all rows. Empty below three rows or
  /// without variation.
  std::optional<double> spearman;
  /// Mean over choices of ChoiceAccuracy::regret.
  std::optional<double> regret;
  std::optional<double> coverage80;  ///< share of measurements inside their interval
  /// Means over origins of their rows' median_ape and coverage80: an origin with a hundred rows counts once.
  std::optional<double> origin_median_ape, origin_coverage80;
};

/// Over the alternatives of one choice that have a prediction, at least two.
struct ChoiceAccuracy {
  std::string choice;
  std::int64_t n = 0;
  std::optional<double> spearman;  ///< empty below three alternatives or without variation
  double regret = 0;               ///< measured value of the alternative predicted best over that of the one measured
                                   ///< best, minus 1
};
std::vector<ChoiceAccuracy> accuracy_of_choices(const std::vector<Judged>& rows, Forecast Judged::*which);

/// `which` = &Judged::forecast or &Judged::baseline.
Accuracy accuracy(const std::vector<Judged>& rows, Forecast Judged::*which);

/// Sets intervals from the rows' own errors by regime, each without the row's own group (LeftOutErrors).
void add_intervals(std::vector<Judged>& rows, Forecast Judged::*which);

}  // namespace wt
