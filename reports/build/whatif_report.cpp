#include "reports/build/whatif_report.hpp"

#include <nlohmann/json.hpp>

#include "configs/spec/support/number.hpp"

namespace wt {

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
      const RunDistribution& runs = p.runs.distribution;
      for (double value : {p.step.step_s, p.step.tokens_per_s_per_gpu}) cells.emplace_back(value);
      cells.push_back(p.step.mfu > 0 ? Cell(100 * p.step.mfu) : Cell("-"));
      for (double value :
           {p.step.exposed_s, p.memory.reserved.bytes / kGiB_bytes, p.schedule.cadence.interval_s.value / 60,
            100 * runs.goodput, runs.p50_s / kDay_s, runs.p95_s / kDay_s})
        cells.emplace_back(value);
      cells.emplace_back(fmt::format("{}, {}, microbatch {}{}", p.layout.name(), to_string(p.layout.recompute),
                                     p.layout.microbatch, p.layout.placement.empty() ? "" : ", placed"));
    } else {
      while (cells.size() + 1 < table.columns.size()) cells.emplace_back("-");
      cells.emplace_back(row.failure == Code::finding ? "does not fit" : "cannot be planned", Status::bad);
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
                  {"goodput", p.runs.distribution.goodput},
                  {"p50_s", p.runs.distribution.p50_s},
                  {"p95_s", p.runs.distribution.p95_s},
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
