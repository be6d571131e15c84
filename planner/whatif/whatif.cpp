#include "planner/whatif/whatif.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "configs/base/statistics.hpp"
#include "planner/plan/other_gpus.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostRows = 200;  // a plan takes about half a second

/// Every combination, the last key fastest.
std::vector<std::vector<std::string>> combinations(const std::vector<KeyValuesOf>& sweeps) {
  std::vector<std::vector<std::string>> rows{{}};
  for (const KeyValuesOf& sweep : sweeps) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& row : rows)
      for (const std::string& value : sweep.values) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    rows = std::move(longer);
    if (rows.size() > kMostRows)
      throw_usage("whatif: found more than {} combinations of swept values; sweep fewer", kMostRows);
  }
  return rows;
}

/// "gpus=7, search.tie=0.1".
std::string values_text(const std::vector<KeyValuesOf>& sweeps, const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t k = 0; k < sweeps.size(); ++k)
    out += fmt::format("{}{}={}", k ? ", " : "", sweeps[k].key, values[k]);
  return out;
}

/// Correlates the days of the planned rows with each numeric axis.
void correlate(WhatIf& result) {
  for (std::size_t k = 0; k < result.axes.size(); ++k) {
    SweptAxis& axis = result.axes[k];
    if (!axis.numeric()) continue;
    std::vector<double> numbers, days;
    for (const WhatIfRow& row : result.rows) {
      if (!row.plan) continue;
      const auto at = std::ranges::find(axis.values, row.values[k]);
      numbers.push_back(axis.numbers[static_cast<std::size_t>(at - axis.values.begin())]);
      days.push_back(row.days());
    }
    axis.rank_correlation = spearman(numbers, days);
  }
}

void compare_days(WhatIf& result) {
  const WhatIfRow* base = result.base();
  for (WhatIfRow& row : result.rows)
    if (row.plan && &row != base) row.difference = paired_days(row.inputs, *row.plan, base->inputs, *base->plan);
}

}  // namespace

SweptAxis swept_axis(const std::string& key, const std::vector<std::string>& values) {
  SweptAxis axis{.key = key, .values = values, .numbers = {}, .unit = ""};
  for (const std::string& value : values) {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    std::string unit(end);
    unit.erase(0, unit.find_first_not_of(' '));
    const bool first = axis.numbers.empty();
    if (end == value.c_str() || !std::isfinite(number) || (!first && unit != axis.unit)) {
      axis.numbers.clear();
      axis.unit.clear();
      return axis;
    }
    axis.numbers.push_back(number);
    axis.unit = unit;
  }
  return axis;
}

const WhatIfRow& WhatIf::at(const std::vector<std::size_t>& places) const {
  std::size_t row = 0;
  for (std::size_t k = 0; k < axes.size(); ++k) row = row * axes[k].values.size() + places[k];
  return rows.at(row);
}

const WhatIfRow* WhatIf::base() const {
  const auto first = std::ranges::find_if(rows, [](const WhatIfRow& row) { return row.plan.has_value(); });
  return first == rows.end() ? nullptr : &*first;
}

WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed, const SearchProgress& progress) {
  const Assignments fixed = assignments_of(settings);
  WhatIf out;
  for (const auto& [key, value] : fixed) out.settings.push_back(key + "=" + value);
  for (const KeyValuesOf& sweep : sweeps) out.axes.push_back(swept_axis(sweep.key, sweep.values));
  const auto rows = combinations(sweeps);
  const auto total = static_cast<std::int64_t>(rows.size());
  for (const std::vector<std::string>& values : rows) {
    const std::string row = values_text(sweeps, values);
    if (progress) progress("reading inputs", static_cast<std::int64_t>(out.rows.size()), total, row);
    try {
      Assignments assignments = fixed;
      for (std::size_t k = 0; k < sweeps.size(); ++k) assignments.emplace_back(sweeps[k].key, values[k]);
      PlanInputs inputs = read_plan_inputs(assigned_study(study_text, origin, assignments), allow_assumed);
      check_schedule(inputs);
      out.rows.push_back({.values = values, .inputs = std::move(inputs), .plan = {}, .misfit = ""});
    } catch (const Error& e) {
      if (row.empty()) throw;
      throw_error(e.code(), "whatif: {}: {}; nothing was planned", row, e.what());
    }
  }
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    const auto part = [&](const std::string& what, std::int64_t, std::int64_t, const std::string& layout) {
      progress("planning rows", static_cast<std::int64_t>(i), total, what + (layout.empty() ? "" : ", " + layout));
    };
    try {
      out.rows[i].plan = make_plan_or_say(out.rows[i].inputs, progress ? SearchProgress(part) : SearchProgress());
    } catch (const Error& e) {
      out.rows[i].misfit = e.what();
      out.rows[i].failure = e.code();
    }
  }
  correlate(out);
  compare_days(out);
  return out;
}

}  // namespace wt
