// What if: the same study planned again with other values of its keys.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/spec/support/error.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

struct KeyValuesOf {
  std::string key;                  ///< dotted study key, "scale.network_bandwidth"
  std::vector<std::string> values;  ///< YAML
};
/// "key=a,b,c"; commas inside brackets do not split. Throws Error{usage} without a key or a value.
KeyValuesOf parse_assignment(const std::string& text, bool several);

struct WhatIfRow {
  std::vector<std::string> values;  ///< of the swept keys, in their order
  PlanInputs inputs;
  std::optional<Plan> plan;      ///< nothing: does not fit
  std::string misfit;            ///< why
  Code failure = Code::finding;  ///< of a row without a plan; else than finding, something in it is refused
};

struct WhatIf {
  std::vector<std::string> keys;
  std::vector<WhatIfRow> rows;  ///< one or more
};

/// Plans every combination of the swept values (the last key fastest); without any, one row. Throws Error{usage} for
/// keys that a study does not have and values that it does not take, before anything is planned and with the row's
/// values; what only shows while a row is planned is that row's misfit. At most 200 rows.
WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed, const SearchProgress& progress = {});

}  // namespace wt
