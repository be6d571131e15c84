#include "planner/whatif/whatif.hpp"

#include <algorithm>
#include <set>

#include "configs/spec/study_keys.hpp"
#include "configs/spec/support/statistics.hpp"
#include "configs/spec/support/yaml.hpp"

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
      throw_error(Code::usage, "whatif: found more than {} combinations of swept values; sweep fewer", kMostRows);
  }
  return rows;
}

}  // namespace

KeyValuesOf parse_assignment(const std::string& text, bool several) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw_error(Code::usage, "whatif: found '{}', needs {}", text, several ? "key=a,b,c" : "key=value");
  KeyValuesOf out{text.substr(0, at), {}};
  int depth = 0;
  std::string value;
  for (char c : text.substr(at + 1)) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (several && c == ',' && depth == 0) {
      out.values.push_back(value);
      value.clear();
    } else {
      value += c;
    }
  }
  out.values.push_back(value);
  for (const std::string& one : out.values)
    if (one.empty()) throw_error(Code::usage, "whatif: {}: found an empty value in '{}'", out.key, text);
  return out;
}

namespace {

/// "gpus=7, search.tie=0.1", for people.
std::string values_text(const std::vector<KeyValuesOf>& sweeps, const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t k = 0; k < sweeps.size(); ++k)
    out += fmt::format("{}{}={}", k ? ", " : "", sweeps[k].key, values[k]);
  return out;
}

}  // namespace

namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;

/// Of the assignments that name another cluster or model, and no key in it.
Assignments named_ones(Assignments assignments) {
  std::erase_if(assignments, [](const auto& one) { return one.first != "cluster" && one.first != "model"; });
  return assignments;
}

/// The study that these assignments make of the text.
StudySpec study_with(const std::string& text, const std::string& origin, const Assignments& assignments) {
  const auto refuse = [&](const std::string& key, const std::string& unknown, const std::set<std::string>& asked) {
    const std::string base = set_study_keys(text, named_ones(assignments), origin);
    std::optional<MeantKey> meant = meant_key(key, base, origin, asked);
    if (!meant) meant = meant_key(unknown, base, origin, asked);
    throw_error(Code::usage, "{}: unknown key{}", key,
                meant
                    ? fmt::format("; did you mean '{}' ({})?", meant->key, meant->file)
                    : fmt::format(" of the study, its cluster and its model; their keys are in {} and in docs/files.md",
                                  origin));
  };
  std::set<std::string> asked;
  StudySpec study;
  try {
    study = study_from_text(set_study_keys(text, assignments, origin), origin + " with --set and --sweep", &asked);
  } catch (const UnknownKey& e) {
    for (const auto& [key, value] : assignments)
      if (key == e.key() || key.starts_with(e.key() + ".")) refuse(key, e.key(), e.asked());
    throw;
  }
  for (const auto& [key, value] : assignments)  // readers of a config.json let unknown keys pass
    if (key.starts_with("model.") && !asked.contains(key)) refuse(key, key, asked);
  return study;
}

/// How the days of the planned rows go with each axis of numbers.
void correlate(WhatIf& result) {
  for (std::size_t k = 0; k < result.axes.size(); ++k) {
    SweptAxis& axis = result.axes[k];
    if (!axis.numeric()) continue;
    std::vector<double> numbers, days;
    for (const WhatIfRow& row : result.rows) {
      if (!row.plan) continue;
      const auto at = std::find(axis.values.begin(), axis.values.end(), row.values[k]);
      numbers.push_back(axis.numbers[static_cast<std::size_t>(at - axis.values.begin())]);
      days.push_back(row.days());
    }
    axis.rank_correlation = spearman(numbers, days);
  }
}

}  // namespace

const WhatIfRow& WhatIf::at(const std::vector<std::size_t>& places) const {
  std::size_t row = 0;
  for (std::size_t k = 0; k < axes.size(); ++k) row = row * axes[k].values.size() + places[k];
  return rows.at(row);
}

WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed, const SearchProgress& progress) {
  Assignments fixed;
  for (const KeyValuesOf& setting : settings) fixed.emplace_back(setting.key, setting.values.at(0));
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
      PlanInputs inputs = read_plan_inputs(study_with(study_text, origin, assignments), allow_assumed);
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
      out.rows[i].plan = make_plan(out.rows[i].inputs, progress ? SearchProgress(part) : SearchProgress());
    } catch (const Error& e) {
      out.rows[i].misfit = e.what();
      out.rows[i].failure = e.code();
    }
  }
  correlate(out);
  return out;
}

}  // namespace wt
