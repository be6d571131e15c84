#include "planner/whatif/whatif.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/number.hpp"

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
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
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

WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed, const SearchProgress& progress) {
  std::string base = study_text;
  for (const KeyValuesOf& setting : settings) base = set_study_key(base, setting.key, setting.values.at(0), origin);
  WhatIf out;
  for (const KeyValuesOf& sweep : sweeps) out.keys.push_back(sweep.key);
  const auto rows = combinations(sweeps);
  const auto total = static_cast<std::int64_t>(rows.size());
  for (const std::vector<std::string>& values : rows) {
    const std::string row = values_text(sweeps, values);
    if (progress) progress("reading inputs", static_cast<std::int64_t>(out.rows.size()), total, row);
    try {
      std::string text = base;
      for (std::size_t k = 0; k < sweeps.size(); ++k) text = set_study_key(text, sweeps[k].key, values[k], origin);
      PlanInputs inputs = read_plan_inputs(study_from_text(text, origin), allow_assumed);
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
  return out;
}

}  // namespace wt
