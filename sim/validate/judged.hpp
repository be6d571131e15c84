// Predictions beside measurements, and the figures that judge them. Errors are fractions: predicted / measured - 1.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

/// What the estimator behind a prediction has not seen.
enum class LeftOut {
  group,   ///< Judged::group
  origin,  ///< all that Judged::origin published: harder
};

/// A prediction, or why there is none.
struct Forecast {
  std::optional<double> value;  ///< seconds or bytes, as what was measured
  double low = 0, high = 0;     ///< 80 % interval
  EvidenceShares evidence{};    ///< what the prediction rests on; sums to 1
  std::string reason;           ///< of abstaining
};

/// One measurement beside the model's prediction of it and a naive one.
struct Judged {
  std::int64_t line = 0;                  ///< in the file
  std::string name;                       ///< of the measurement, for people
  std::string group;                      ///< what is left out of the fit together
  std::string origin = {};                ///< who published it (Origins)
  std::string regime;                     ///< rows whose errors are alike; intervals come from them
  std::string choice = {};                ///< rows that are alternatives to each other; empty = it is no choice
  std::string alternative = {};           ///< which of them this is
  double measured = 0;                    ///< seconds or bytes, the same of all rows
  std::vector<std::string> assumed = {};  ///< what nobody said of the measurement and the forecast takes for granted
  Forecast forecast, baseline;
};

/// Of the rows with a prediction; all but the counts are empty without one.
struct Accuracy {
  std::int64_t n = 0, abstained = 0, groups = 0, origins = 0;
  std::optional<double> mape, median_ape, p90_ape;  ///< mean, median and 90th percentile of |predicted / measured - 1|
  std::optional<double> bias;                       ///< median of predicted / measured - 1
  /// Rank correlation, within choices where there are some of three alternatives (a mean over those of ten and more, or
  /// else over all), otherwise over all rows; empty below three rows or without variation.
  std::optional<double> spearman;
  /// Mean over choices: what was measured of the one predicted best over the best one, - 1.
  std::optional<double> regret;
  std::optional<double> coverage80;  ///< share of measurements inside their interval
  /// Means over origins of median_ape and coverage80 of their rows: who published a hundred rows counts once.
  std::optional<double> origin_median_ape, origin_coverage80;
};

/// Of the predicted alternatives of one choice, two at least.
struct ChoiceAccuracy {
  std::string choice;
  std::int64_t n = 0;
  std::optional<double> spearman;  ///< empty below three alternatives or without variation
  double regret = 0;               ///< what was measured of the one predicted best over the best one, - 1
};
std::vector<ChoiceAccuracy> accuracy_of_choices(const std::vector<Judged>& rows, Forecast Judged::*which);

/// `which` = &Judged::forecast or &Judged::baseline.
Accuracy accuracy(const std::vector<Judged>& rows, Forecast Judged::*which);

/// Intervals from the rows' own errors, by regime, each without the rows of its own group (LeftOutErrors).
void add_intervals(std::vector<Judged>& rows, Forecast Judged::*which);

}  // namespace wt
