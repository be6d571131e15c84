// What if: the same study planned again with other values of its keys.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/study_assignments.hpp"
#include "planner/plan/plan.hpp"
#include "planner/whatif/swept_axis.hpp"

namespace wt {

struct WhatIfRow {
  std::vector<std::string> values;  ///< of the swept keys, in their order
  PlanInputs inputs;
  std::optional<Plan> plan;      ///< nothing: does not fit
  std::string misfit;            ///< why
  Code failure = Code::finding;  ///< of a row without a plan; else than finding, something in it is refused

  double days() const { return plan->cost.days.p50; }
};

struct WhatIf {
  std::vector<std::string> settings;  ///< of every row: "search.tie=0.1"
  std::vector<SweptAxis> axes;
  std::vector<WhatIfRow> rows;  ///< one or more
  /// With one row of each combination: that of these places on the axes.
  const WhatIfRow& at(const std::vector<std::size_t>& places) const;
};

/// Plans every combination of the swept values (the last key fastest); without any, one row. Throws Error{usage} for
/// keys that study, cluster and model do not have (with the nearest one and its file) and for values that they do not
/// take, before anything is planned and with the row's values; what only shows while a row is planned is that row's
/// misfit. At most 200 rows.
WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed, const SearchProgress& progress = {});

}  // namespace wt
