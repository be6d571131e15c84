// Swept keys as axes: their values as numbers where they are, and how days go with them.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace wt {

struct SweptAxis {
  std::string key;
  std::vector<std::string> values;  ///< as given
  std::vector<double> numbers;      ///< one a value; empty where a value is no number, or units differ
  std::string unit;                 ///< behind all of the numbers: "Gb/s", "T"; may be ""
  /// Spearman's rank correlation with the days of the rows that have a plan; empty below three rows, where one of the
  /// two does not vary, and without numbers.
  std::optional<double> rank_correlation = {};

  bool numeric() const { return !numbers.empty(); }
};

/// "200Gb/s, 400Gb/s": 200 and 400 in Gb/s.
SweptAxis swept_axis(const std::string& key, const std::vector<std::string>& values);

}  // namespace wt
