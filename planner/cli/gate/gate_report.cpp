#include "planner/cli/gate/gate_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "planner/cli/gate/gate_format.hpp"
#include "planner/cli/parts/json_parts.hpp"
#include "reports/render/render.hpp"
#include "reports/render/text_report.hpp"

namespace wt {
namespace {

using nlohmann::json;

std::string settings(const GateResult& result) {
  const GateOptions& o = result.options;
  if (result.order == Order::in_blocks)
    return fmt::format(
        "A finding: p < {:g} over all benchmarks and looks, more than {:g} % and more than {:g} us. The intervals hold "
        "at all looks together.",
        o.alpha, o.relative_floor * 100, o.absolute_floor_s * 1e6);
  return fmt::format(
      "A finding: adjusted exact U p < {:g} (or full separation from {} samples a side), more than {:g} % "
      "and more than {:g} us.",
      o.alpha, o.separation_samples, o.relative_floor * 100, o.absolute_floor_s * 1e6);
}

json row_json(const GateRow& row) {
  return {{"name", row.name},
          {"verdict", to_string(row.verdict)},
          {"reason", row.reason},
          {"unit", row.unit},
          {"smaller_is_better", row.smaller_is_better},
          {"base_n", row.base_n},
          {"current_n", row.current_n},
          {"base_median", or_null(row.base_median)},
          {"current_median", or_null(row.current_median)},
          {"delta", or_null(row.delta)},
          {"ratio", or_null(row.ratio)},
          {"ratio_low", or_null(row.ratio_low)},
          {"ratio_high", or_null(row.ratio_high)},
          {"p", or_null(row.p)},
          {"p_adjusted", or_null(row.p_adjusted)},
          {"separated", row.separated},
          {"samples_needed", or_null(row.samples_needed)}};
}

Table gate_table(const std::vector<const GateRow*>& rows) {
  Table table{.columns = {{"verdict"},
                          {"benchmark"},
                          {"base", "", Align::right},
                          {"new", "", Align::right},
                          {"change", "", Align::right},
                          {"95 % interval"},
                          {"n", "", Align::right},
                          {"p adj", "", Align::right},
                          {"why"}}};
  for (const GateRow* row : rows)
    table.rows.push_back({to_string(row->verdict), row->name, gate_value(row->base_median, row->unit),
                          gate_value(row->current_median, row->unit), gate_change(row->ratio), gate_interval(*row),
                          gate_samples(*row), gate_p(row->p_adjusted), gate_reason(*row)});
  return table;
}

}  // namespace

std::string gate_text(const GateResult& result, bool all) {
  std::vector<const GateRow*> listed;
  for (const GateRow& row : result.rows)
    if (all || (row.verdict != Verdict::same && row.verdict != Verdict::fresh)) listed.push_back(&row);
  std::string text = result.sentence() + "\n\n";
  if (!listed.empty()) {
    Table table = gate_table(listed);
    const auto names_behind_numbers = [](auto& cells) {
      std::rotate(cells.begin() + 1, cells.begin() + 2, cells.end() - 1);
    };
    names_behind_numbers(table.columns);  // names are long, and a terminal is narrow
    for (auto& row : table.rows) names_behind_numbers(row);
    text += text_table(table) + "\n";
  }
  return text + settings(result) + "\n" + result.order_sentence() + "\n";
}

json gate_json(const GateResult& result) {
  const GateOptions& o = result.options;
  json counts, rows = json::array(), differing = json::array();
  for (Verdict v : {Verdict::slower, Verdict::failed, Verdict::missing, Verdict::incomparable, Verdict::inconclusive,
                    Verdict::faster, Verdict::fresh, Verdict::same})
    counts[to_string(v)] = result.count(v);
  for (const GateRow& row : result.rows) rows.push_back(row_json(row));
  for (const FingerprintDifference& d : result.differences)
    differing.push_back({{"key", d.key}, {"base", d.left}, {"current", d.right}});
  return {{"schema", "windtunnel.gate/1"},
          {"sentence", result.sentence()},
          {"exit_status", result.exit_status()},
          {"measured", result.order == Order::in_turns        ? json("in turns")
                       : result.order == Order::in_blocks     ? json("in blocks")
                       : result.order == Order::base_then_new ? json("base, then new")
                                                              : json(nullptr)},
          {"counts", std::move(counts)},
          {"unmeasured", result.unmeasured},
          {"command", result.command.empty() ? json(nullptr) : json(result.command)},
          {"options",
           {{"alpha", o.alpha},
            {"relative_floor", o.relative_floor},
            {"absolute_floor_s", o.absolute_floor_s},
            {"min_samples", o.min_samples},
            {"separation_samples", o.separation_samples},
            {"allow_missing", o.allow_missing},
            {"strict", o.strict},
            {"ignored_facts", o.ignored_facts}}},
          {"fingerprint_differences", std::move(differing)},
          {"base_fingerprint", result.base_fingerprint},
          {"current_fingerprint", result.current_fingerprint},
          {"rows", std::move(rows)}};
}

std::string gate_markdown(const GateResult& result) {
  std::vector<const GateRow*> shown, folded;
  for (const GateRow& row : result.rows) {
    const bool finding = row.verdict == Verdict::slower || row.verdict == Verdict::failed ||
                         row.verdict == Verdict::missing || row.verdict == Verdict::faster;
    (finding ? shown : folded).push_back(&row);
  }
  std::string text = "### " + markdown_text(result.sentence()) + "\n\n";
  if (!shown.empty()) text += markdown_table(gate_table(shown));
  if (!folded.empty())
    text += fmt::format("<details><summary>{} other benchmark{}</summary>\n\n{}</details>\n\n", folded.size(),
                        folded.size() == 1 ? "" : "s", markdown_table(gate_table(folded)));
  return text + settings(result) + " " + result.order_sentence() + "\n";
}

}  // namespace wt
