// The number formats that a plan compared.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "configs/base/quantity.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/plan/plan_report.hpp"

namespace wt {

Table format_table(const PlanInputs& inputs) {
  Table table{.title = "Number formats",
              .columns = {"precision", "best layout", numeric("step", "s"), numeric("80 % interval", "s"),
                          numeric("saves", "%"), ""}};
  const auto& rows = inputs.formats;
  for (const FormatRow& row : rows) {
    if (!row.unplanned.empty()) {
      table.rows.push_back({row.precision, row.unplanned, "-", "-", "-", ""});
      continue;
    }
    const FormatRow& first = rows.front();
    table.rows.push_back({row.precision, layout_label(row.layout, inputs.stack), Cell(row.step.step_s),
                          fmt::format("{} to {}", format_number(row.step.low_s), format_number(row.step.high_s)),
                          first.unplanned.empty() ? percent(1 - row.value / first.value) : Cell("-"),
                          row.precision == inputs.study.precision.word ? Cell("chosen", Status::good) : Cell("")});
  }
  table.note =
      "Saves: days of the run, or energy where that is preferred, against the first format. Time and memory alone are "
      "predicted. Whether this model trains to the same loss below 16 bits was not measured here: compare losses "
      "before you rely on it.";
  return table;
}

nlohmann::json formats_json(const PlanInputs& inputs) {
  nlohmann::json out = nlohmann::json::array();
  for (const FormatRow& row : inputs.formats) {
    out.push_back({{"precision", row.precision}, {"chosen", row.precision == inputs.study.precision.word}});
    if (row.unplanned.empty())
      out.back().update({{"layout", row.layout.name()},
                         {"layout_words", layout_words(row.layout, inputs.stack)},
                         {"step_s", row.step.step_s},
                         {"interval80_s", {row.step.low_s, row.step.high_s}},
                         {"objective", row.value}});
    else
      out.back()["unplanned"] = row.unplanned;
  }
  return out;
}

}  // namespace wt
