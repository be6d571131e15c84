// The gate's comment on a pull request: only findings, or nothing.
#include <fmt/core.h>

#include "planner/cli/gate/gate_format.hpp"
#include "planner/cli/gate/gate_report.hpp"
#include "reports/render/render.hpp"

namespace wt {

std::string gate_comment(const GateResult& result) {
  Table table{.columns = {"verdict", "benchmark", numeric("change"), "interval", numeric("base"), numeric("new")}};
  constexpr std::size_t kMost = 100;
  std::size_t found = 0;
  std::string reasons;
  for (const GateRow& row : result.rows) {  // worst first
    const bool missing = row.verdict == Verdict::missing && !result.options.allow_missing;
    const bool failed = row.verdict == Verdict::failed && !row.failed_before;
    if (row.verdict != Verdict::slower && row.verdict != Verdict::faster && !missing && !failed) continue;
    if (++found > kMost) continue;
    if (failed) reasons += fmt::format("- {}: {}\n", markdown_text(row.name), markdown_text(row.reason));
    table.rows.push_back({to_string(row.verdict), row.name, gate_change(row.ratio), gate_interval(row),
                          gate_value(row.base_median, row.unit), gate_value(row.current_median, row.unit)});
  }
  if (found == 0) return "";
  std::string text = "### " + markdown_text(result.sentence()) + "\n\n" + markdown_table(table);
  if (found > kMost) text += fmt::format("and {} more\n\n", found - kMost);
  if (!reasons.empty()) text += "Failed:\n\n" + reasons + "\n";
  if (!result.command.empty()) text += fmt::format("Measured by:\n\n```\n{}\n```\n\n", result.command);
  return text + result.order_sentence() + "\n";
}

}  // namespace wt
