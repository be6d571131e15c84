// What-if: plans the same study with other values of its keys.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/study_assignments.hpp"
#include "planner/plan/paired_days.hpp"

namespace wt {

/// Swept keys as axes: numeric values where possible, and their correlation with the days.
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

struct WhatIfRow {
  std::vector<std::string> values;  ///< of the swept keys, in order
  PlanInputs inputs;
  std::optional<Plan> plan;      ///< empty: no layout fits
  std::string misfit;            ///< why none fits
  Code failure = Code::finding;  ///< of a row without a plan; any other code = a value is refused
  /// From the first row with a plan; empty for that row, and without a plan.
  std::optional<PairedDays> difference = {};

  double days() const { return plan->cost.days.p50; }
};

struct WhatIf {
  std::vector<std::string> settings;  ///< the same in every row: "search.tie=0.1"
  std::vector<SweptAxis> axes;
  std::vector<WhatIfRow> rows;  ///< at least one
  /// The row at these positions on the axes, if there is one row per combination.
  const WhatIfRow& at(const std::vector<std::size_t>& places) const;
  /// The first row with a plan, to which the others are compared; nullptr = none has one.
  const WhatIfRow* base() const;
};

/// Plans every combination of the swept values (the last key fastest); without any, one row. Throws Error{usage} before
/// anything is planned for keys that study, cluster and model do not have (with the nearest key and its file), and for
/// values that a key does not allow. An error that only shows while a row is planned is that row's misfit. At most 200
/// rows.
WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed, const SearchProgress& progress = {});

}  // namespace wt
