#include "reports/build/gate_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/build/gate_format.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Line = std::array<std::string, 8>;

std::string settings(const GateOptions& o) {
  return fmt::format(
      "A finding: adjusted exact U p < {:g} (or full separation from {} samples a side), more than {:g} % "
      "and more than {:g} us.",
      o.alpha, o.separation_samples, o.relative_floor * 100, o.absolute_floor_s * 1e6);
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

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
          {"samples_needed", row.samples_needed ? json(*row.samples_needed) : json(nullptr)}};
}

}  // namespace

std::string gate_text(const GateResult& result, bool all) {
  std::vector<Line> lines = {{"verdict", "base", "new", "change", "95 % interval", "n", "p adj", "benchmark"}};
  for (const GateRow& row : result.rows) {
    if (!all && (row.verdict == Verdict::same || row.verdict == Verdict::fresh)) continue;
    lines.push_back({to_string(row.verdict), gate_value(row.base_median, row.unit),
                     gate_value(row.current_median, row.unit), gate_change(row.ratio), gate_interval(row),
                     gate_samples(row), gate_p(row.p_adjusted), row.name + "  (" + gate_reason(row) + ")"});
  }
  std::string text = result.sentence() + "\n";
  if (lines.size() > 1) {
    text += "\n";
    std::array<std::size_t, 8> width{};
    for (const Line& line : lines)
      for (std::size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
    for (const Line& line : lines) {
      for (std::size_t i = 0; i + 1 < line.size(); ++i) text += fmt::format("{:<{}}  ", line[i], width[i]);
      text += line.back() + "\n";
    }
  }
  return text + "\n" + settings(result.options) + "\n" + result.order_sentence() + "\n";
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
                       : result.order == Order::base_then_new ? json("base, then new")
                                                              : json(nullptr)},
          {"counts", std::move(counts)},
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
  const auto cell = [](const std::string& text) {
    std::string safe;
    for (char c : text) safe += c == '|' ? "\\|" : c == '<' ? "&lt;" : c == '\n' ? " " : std::string(1, c);
    return safe;
  };
  const auto table = [&](const std::vector<const GateRow*>& rows) {
    std::string text =
        "| verdict | benchmark | base | new | change | 95 % interval | n | p adj | why |\n"
        "|---|---|--:|--:|--:|---|--:|--:|---|\n";
    for (const GateRow* row : rows)
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", to_string(row->verdict), cell(row->name),
                          gate_value(row->base_median, row->unit), gate_value(row->current_median, row->unit),
                          gate_change(row->ratio), gate_interval(*row), gate_samples(*row), gate_p(row->p_adjusted),
                          cell(gate_reason(*row)));
    return text;
  };
  std::vector<const GateRow*> shown, folded;
  for (const GateRow& row : result.rows) {
    const bool finding = row.verdict == Verdict::slower || row.verdict == Verdict::failed ||
                         row.verdict == Verdict::missing || row.verdict == Verdict::faster;
    (finding ? shown : folded).push_back(&row);
  }
  std::string text = "### " + cell(result.sentence()) + "\n\n";
  if (!shown.empty()) text += table(shown) + "\n";
  if (!folded.empty())
    text += fmt::format("<details><summary>{} other benchmark{}</summary>\n\n{}\n</details>\n\n", folded.size(),
                        folded.size() == 1 ? "" : "s", table(folded));
  return text + settings(result.options) + " " + result.order_sentence() + "\n";
}

}  // namespace wt
