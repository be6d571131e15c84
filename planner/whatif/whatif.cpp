#include "planner/whatif/whatif.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "sim/program/routing/named_routing.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostRows = 200;  // a plan takes about half a second
constexpr double kDay = 86400, kGiB = 1024.0 * 1024 * 1024;

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

WhatIf what_if(const std::string& study_text, const std::string& origin, const std::vector<KeyValuesOf>& settings,
               const std::vector<KeyValuesOf>& sweeps, bool allow_assumed,
               const std::function<void(std::int64_t, std::int64_t)>& progress) {
  std::string base = study_text;
  for (const KeyValuesOf& setting : settings) base = set_study_key(base, setting.key, setting.values.at(0), origin);
  WhatIf out;
  for (const KeyValuesOf& sweep : sweeps) out.keys.push_back(sweep.key);
  std::vector<StudySpec> studies;
  for (auto& values : combinations(sweeps)) {
    std::string text = base;
    for (std::size_t k = 0; k < sweeps.size(); ++k) text = set_study_key(text, sweeps[k].key, values[k], origin);
    studies.push_back(study_from_text(text, origin));
    out.rows.push_back({std::move(values), {}, ""});
  }
  out.study = studies.front();
  std::optional<PlanInputs> inputs;
  for (std::size_t i = 0; i < studies.size(); ++i) {
    // Calibrating again is only needed for other profiles, or other published prices; everything else is quick to read.
    if (inputs && studies[i].stack.empty() && inputs->study.profiles == studies[i].profiles &&
        inputs->study.precision == studies[i].precision) {
      studies[i].cluster.check_one_gpu(studies[i].gpus);
      inputs->study = studies[i];
      inputs->scenarios = read_scenarios(studies[i].routing, studies[i].model);
      inputs->failures = read_failures(studies[i].failures);
      inputs->stragglers = read_stragglers(studies[i].stragglers);
      inputs->silent_errors = read_silent_errors(studies[i].silent_errors.rate);
    } else {
      inputs.emplace(read_plan_inputs(studies[i], allow_assumed));
    }
    try {
      out.rows[i].plan = make_plan(*inputs);
    } catch (const Error& e) {
      if (e.code() != Code::finding) throw;
      out.rows[i].misfit = e.what();
    }
    if (progress) progress(static_cast<std::int64_t>(i + 1), static_cast<std::int64_t>(studies.size()));
  }
  return out;
}

Table what_if_table(const WhatIf& result) {
  Table table{.title = "What if: " + result.study.name, .columns = {}};
  for (const std::string& key : result.keys) table.columns.push_back({key, "", Align::right});
  for (const auto& [name, unit] : {std::pair{"step", "s"},
                                   {"tokens/s/GPU", ""},
                                   {"MFU", "%"},
                                   {"exposed", "s"},
                                   {"memory reserved", "GiB"},
                                   {"save every", "min"},
                                   {"goodput", "%"},
                                   {"P50", "days"},
                                   {"P95", "days"}})
    table.columns.push_back({name, unit, Align::right});
  table.columns.push_back({"layout"});
  for (const WhatIfRow& row : result.rows) {
    std::vector<Cell> cells(row.values.begin(), row.values.end());
    if (row.plan) {
      const Plan& p = *row.plan;
      const RunDistribution& runs = p.runs.chosen;
      for (double value : {p.step.step_s, p.step.tokens_per_s_per_gpu}) cells.emplace_back(value);
      cells.push_back(p.step.mfu > 0 ? Cell(100 * p.step.mfu) : Cell("-"));
      for (double value : {p.step.exposed_s, p.memory.reserved.bytes / kGiB, p.schedule.cadence.interval_s.value / 60,
                           100 * runs.goodput, runs.p50_s / kDay, runs.p95_s / kDay})
        cells.emplace_back(value);
      cells.emplace_back(fmt::format("{}, {}, microbatch {}{}", p.layout.name(), to_string(p.layout.recompute),
                                     p.layout.microbatch, p.layout.placement.empty() ? "" : ", placed"));
    } else {
      while (cells.size() + 1 < table.columns.size()) cells.emplace_back("-");
      cells.emplace_back("does not fit", Status::bad);
    }
    table.rows.push_back(std::move(cells));
  }
  table.note = "The layout is chosen anew in each row; set search.shard_sizes and others to one value to keep it.";
  return table;
}

nlohmann::json what_if_json(const WhatIf& result) {
  nlohmann::json rows = nlohmann::json::array();
  for (const WhatIfRow& row : result.rows) {
    nlohmann::json one{{"values", nlohmann::json::object()}, {"fits", row.plan.has_value()}};
    for (std::size_t k = 0; k < result.keys.size(); ++k) one["values"][result.keys[k]] = row.values[k];
    if (row.plan) {
      const Plan& p = *row.plan;
      one.update({{"step_s", p.step.step_s},
                  {"low_s", p.step.low_s},
                  {"high_s", p.step.high_s},
                  {"tokens_per_s_per_gpu", p.step.tokens_per_s_per_gpu},
                  {"mfu", p.step.mfu > 0 ? nlohmann::json(p.step.mfu) : nlohmann::json(nullptr)},
                  {"exposed_communication_s", p.step.exposed_s},
                  {"memory_bytes", p.memory.reserved.bytes},
                  {"interval_s", p.schedule.cadence.interval_s.value},
                  {"goodput", p.runs.chosen.goodput},
                  {"p50_s", p.runs.chosen.p50_s},
                  {"p95_s", p.runs.chosen.p95_s},
                  {"layout", p.layout.name()},
                  {"recompute", to_string(p.layout.recompute)},
                  {"microbatch", p.layout.microbatch},
                  {"proved", p.search.certificate.proved}});
    } else {
      one["reason"] = row.misfit;
    }
    rows.push_back(std::move(one));
  }
  return {{"schema", "windtunnel.whatif/1"}, {"study", result.study.name}, {"rows", rows}};
}

}  // namespace wt
