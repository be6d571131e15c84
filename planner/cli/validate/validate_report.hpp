// The output of `windtunnel validate`: one JSON document with a row per measurement, or tables for people.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/model/report.hpp"
#include "sim/cost/stacks/step_constants.hpp"
#include "sim/validate/judge_memory.hpp"
#include "sim/validate/judged.hpp"
#include "sim/validate/ratios.hpp"

namespace wt {

/// Unit of the measured quantity: in JSON keys (measured_s), and in tables.
struct ValueUnit {
  std::string key, shown;
  double scale = 1;  ///< from the JSON unit to the shown one
};
inline const ValueUnit kMicroseconds = {"s", "us", 1e6}, kSeconds = {"s", "s", 1},
                       kBytes = {"bytes", "GiB", 1.0 / (1 << 30)}, kWatts = {"W", "W", 1};

/// Rows that were judged in another way, or that measure something else.
struct JudgedApart {
  std::string key;    ///< in JSON
  std::string title;  ///< of their section
  std::vector<Judged> rows;
};

struct Validation {
  std::string subject;  ///< "kernels", "collectives", "dispatches", "runs", "memory", "routing", "energy"
  std::string file;
  std::string method;    ///< how rows are left out of the fit that predicts them, one sentence
  std::string baseline;  ///< "MFU is constant"
  std::vector<Judged> rows;
  ValueUnit unit = kMicroseconds;
  std::vector<Judged> whole_sources =
      {};                        ///< the same with all of a row's origin left out; empty where it makes no sense
  std::string whole = "origin";  ///< what is left out there
  std::vector<JudgedApart> apart = {};
  std::optional<StepModel> steps = {};       ///< of runs: fitted to those of configs/measurements
  std::vector<Ratio> ratios = {};            ///< between alternatives, where those are what the rows are about
  std::vector<JudgedOutcome> outcomes = {};  ///< of memory: runs that are known to have run, or to have run out of it
  bool files = false;                        ///< rows are written as files of a user
  bool every_row = false;                    ///< all rows are printed, not those of thin regimes alone
};

/// {schema, subject, file, method, rows: [...], summary: {..., baseline: {...}}, regimes: [{regime, ...}],
/// families: [{family, ...}], whole_sources_left_out: {summary and families, or null}, apart: {KEY: the same}, stacks:
/// {typical: {constant: value}, NAME: {constant: factor}} or null, ratios: {n, mape, largest, baseline: {mape,
/// largest}, pairs: [{choice, slower, faster, measured, predicted, balanced}]} or null, outcomes: [{line, name, origin,
/// ran, runs_out, reason}]}. Times in seconds or memory in bytes, errors as fractions. A row's `said`: exactly, nearly
/// or not (at all). A predicted row's `assumed`: what its source does not say, in words. null where a figure is not
/// defined.
nlohmann::json validation_json(const Validation& validation);

Report validation_report(const Validation& validation);

}  // namespace wt
