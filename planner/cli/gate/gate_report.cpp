#include "planner/cli/gate/gate_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "configs/base/json_members.hpp"
#include "planner/cli/gate/gate_format.hpp"
#include "reports/render/render.hpp"

namespace wt {

using nlohmann::json;

/// The verdict as one word, for machines.
static std::string word_of(Verdict verdict) {
  return verdict == Verdict::below_floor ? "below_floor" : to_string(verdict);
}
static void to_json(json& out, Verdict verdict) { out = word_of(verdict); }
static void to_json(json& out, const FingerprintDifference& d) {
  out = {{"key", d.key}, {"base", d.left}, {"current", d.right}};
}
WT_TO_JSON(GateOptions, alpha, relative_floor, absolute_floor_s, min_samples, separation_samples, allow_missing, strict,
           ignored_facts)
WT_TO_JSON(GateRow, name, verdict, reason, unit, smaller_is_better, base_n, current_n, base_median, current_median,
           delta, ratio, ratio_low, ratio_high, p, p_adjusted, separated, samples_needed)

namespace {

std::string settings(const GateResult& result) {
  const GateOptions& o = result.options;
  if (result.order == Order::in_blocks)
    return fmt::format(
        "A finding: p < {:g} over all benchmarks and looks, and {}. The intervals hold at all looks together.", o.alpha,
        gate_floors(o));
  return fmt::format("A finding: adjusted exact U p < {:g} (or full separation from {} samples a side), and {}.",
                     o.alpha, o.separation_samples, gate_floors(o));
}

Table gate_table(const std::vector<const GateRow*>& rows) {
  Table table{.columns = {"verdict", "benchmark", numeric("base"), numeric("new"), numeric("change"), "95 % interval",
                          numeric("n"), numeric("p adj"), "why"}};
  for (const GateRow* row : rows)
    table.rows.push_back({to_string(row->verdict), row->name, gate_value(row->base_median, row->unit),
                          gate_value(row->current_median, row->unit), gate_change(row->ratio), gate_interval(*row),
                          gate_samples(*row), gate_p(row->p_adjusted), gate_reason(*row)});
  return table;
}

}  // namespace

std::string gate_text(const GateResult& result, bool all, const TextOptions& options) {
  std::vector<const GateRow*> listed;
  for (const GateRow& row : result.rows)
    if (all || (row.verdict != Verdict::same && row.verdict != Verdict::fresh)) listed.push_back(&row);
  std::string text = result.sentence() + "\n\n";
  if (!listed.empty()) {
    Table table = gate_table(listed);
    // Names are long: they stand behind the numbers, or first where the table is folded, which repeats the first
    // column.
    const auto place_names = [&](auto& cells) {
      const auto name = cells.begin() + 1;
      if (options.table_width > 0)
        std::rotate(cells.begin(), name, name + 1);
      else
        std::rotate(name, name + 1, cells.end() - 1);
    };
    place_names(table.columns);
    for (auto& row : table.rows) place_names(row);
    text += text_table(table, options) + "\n";
  }
  return text + settings(result) + "\n" + result.order_sentence() + "\n";
}

json gate_json(const GateResult& result) {
  json counts;
  for (Verdict v : {Verdict::slower, Verdict::failed, Verdict::missing, Verdict::incomparable, Verdict::inconclusive,
                    Verdict::below_floor, Verdict::faster, Verdict::fresh, Verdict::same})
    counts[word_of(v)] = result.count(v);
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
          {"options", result.options},
          {"fingerprint_differences", result.differences},
          {"base_fingerprint", result.base_fingerprint},
          {"current_fingerprint", result.current_fingerprint},
          {"rows", result.rows}};
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
