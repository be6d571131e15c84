// Swept keys as axes: numeric values where possible, and their correlation with the days.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace wt {

struct SweptAxis {
  std::string key;
  std::vector<std::string> values;  ///< as given
  std::vector<double> numbers;      ///< by value; empty if a value is not a number, or units differ
  std::string unit;                 ///< common unit of the numbers: "Gb/s", "T"; may be ""
  /// Spearman's rank correlation with the days of the rows that have a plan. Empty below three rows, if one of the two
  /// is constant, and without numbers.
  std::optional<double> rank_correlation = {};

  bool numeric() const { return !numbers.empty(); }
};

/// "200Gb/s, 400Gb/s": 200 and 400 in Gb/s.
SweptAxis swept_axis(const std::string& key, const std::vector<std::string>& values);

}  // namespace wt
