// The report that compares the rows of a what-if.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "configs/base/atomic_file.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/whatif/whatif_report.hpp"
#include "reports/render/write.hpp"

namespace wt {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostBars = 40, kMostLines = 6;  // more are unreadable

double days(const WhatIfRow& row) { return row.plan ? row.days() : kGap; }

/// Row indices in the order of the axis's numbers.
std::vector<std::size_t> ascending(const SweptAxis& axis) {
  std::vector<std::size_t> order(axis.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (axis.numeric())
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return axis.numbers[a] < axis.numbers[b]; });
  return order;
}

Chart days_chart(ChartKind kind) {
  return {.kind = kind, .title = "Days until half of the simulated runs are done", .unit = "days"};
}

/// Taken from the first row with a plan.
std::string range_note(const WhatIf& result) {
  const auto planned = std::ranges::find_if(result.rows, [](const WhatIfRow& row) { return bool(row.plan); });
  return planned == result.rows.end() ? "" : "Range: " + plan_range(*planned->plan) + ".";
}

/// One numeric key: a line with the range of each plan.
Chart line_chart(const WhatIf& result) {
  const SweptAxis& axis = result.axes[0];
  Chart chart = days_chart(ChartKind::line);
  chart.label_axis = with_unit(axis.key, axis.unit);
  Series series{.name = "days"};
  for (const std::size_t place : ascending(axis)) {
    const WhatIfRow& row = result.at({place});
    chart.x.push_back(axis.numbers[place]);
    series.values.push_back(days(row));
    series.low.push_back(row.plan ? row.plan->cost.days.p05 : kGap);
    series.high.push_back(row.plan ? row.plan->cost.days.p95 : kGap);
  }
  chart.series = {std::move(series)};
  chart.note = range_note(result);
  return chart;
}

/// Two numeric keys: one line per value of the second.
Chart lines_chart(const WhatIf& result) {
  const SweptAxis &along = result.axes[0], &each = result.axes[1];
  Chart chart = days_chart(ChartKind::line);
  chart.label_axis = with_unit(along.key, along.unit);
  for (const std::size_t place : ascending(along)) chart.x.push_back(along.numbers[place]);
  for (const std::size_t line : ascending(each)) {
    Series series{.name = fmt::format("{} = {}", each.key, each.values[line])};
    for (const std::size_t place : ascending(along)) series.values.push_back(days(result.at({place, line})));
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart bar_chart(const WhatIf& result) {
  Chart chart = days_chart(ChartKind::bar);
  chart.horizontal = true;
  chart.note = range_note(result);
  Series series{.name = "days"};
  for (const WhatIfRow& row : result.rows) {
    if (!row.plan) continue;
    chart.labels.push_back(result.axes.empty() ? row.inputs.study.name
                                               : fmt::format("{}", fmt::join(row.values, ", ")));
    series.values.push_back(row.days());
    series.low.push_back(row.plan->cost.days.p05);
    series.high.push_back(row.plan->cost.days.p95);
    if (chart.labels.size() == kMostBars) break;
  }
  if (chart.labels.size() < result.rows.size())
    chart.note += fmt::format(" {} of {} rows.", chart.labels.size(), result.rows.size());
  chart.series = {std::move(series)};
  return chart;
}

bool two_of_numbers(const WhatIf& result) {
  return result.axes.size() == 2 && result.axes[0].numeric() && result.axes[1].numeric();
}

/// The paired differences with their intervals, a bar or a point for each row.
std::optional<Chart> difference_chart(const WhatIf& result) {
  const WhatIfRow* base = result.base();
  const bool line = result.axes.size() == 1 && result.axes[0].numeric();
  Chart chart{
      .kind = line ? ChartKind::line : ChartKind::bar,
      .title = base == nullptr ? "" : "More or fewer days than with " + values_of(result, *base),
      .unit = "days",
      .value_axis = "difference",
      .line = ReferenceLine{0, "no difference"},
      .horizontal = !line,
      .note =
          "Run by run: the same failures and the same error of the predicted step; steps that differ have an error "
          "of their ratio, too. Range: the 5 % to the 95 % quantile of the differences."};
  Series series{.name = "difference"};
  const auto add = [&](const WhatIfRow& row) {
    const PairedDays d = row.difference.value_or(PairedDays{});
    series.values.push_back(row.plan ? d.p50 : kGap);
    series.low.push_back(row.plan ? d.p05 : kGap);
    series.high.push_back(row.plan ? d.p95 : kGap);
  };
  if (line) {
    chart.label_axis = with_unit(result.axes[0].key, result.axes[0].unit);
    for (const std::size_t place : ascending(result.axes[0])) {
      chart.x.push_back(result.axes[0].numbers[place]);
      add(result.at({place}));
    }
  } else {
    for (const WhatIfRow& row : result.rows) {
      if (!row.difference) continue;
      chart.labels.push_back(fmt::format("{}", fmt::join(row.values, ", ")));
      add(row);
      if (chart.labels.size() == kMostBars) break;
    }
  }
  const bool any = std::ranges::any_of(result.rows, [](const WhatIfRow& row) { return row.difference.has_value(); });
  chart.series = {std::move(series)};
  return any ? std::optional(chart) : std::nullopt;
}

Chart chart_of(const WhatIf& result) {
  if (result.axes.size() == 1 && result.axes[0].numeric()) return line_chart(result);
  if (two_of_numbers(result) && result.axes[1].values.size() <= kMostLines) return lines_chart(result);
  return bar_chart(result);
}

/// Days over two keys; darker means more.
Table grid(const WhatIf& result) {
  const SweptAxis &down = result.axes[0], &across = result.axes[1];
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const WhatIfRow& row : result.rows)
    if (row.plan) least = std::min(least, row.days()), most = std::max(most, row.days());
  Table table{.title = "Days over both keys",
              .columns = {{down.key}},
              .note = fmt::format("Columns: {}. The more days, the darker.", across.key)};
  for (const std::size_t column : ascending(across)) table.columns.push_back(numeric(across.values[column]));
  for (const std::size_t line : ascending(down)) {
    std::vector<Cell> cells{down.values[line]};
    for (const std::size_t column : ascending(across)) {
      const WhatIfRow& row = result.at({line, column});
      Cell cell = row.plan ? Cell(row.days(), fmt::format("{:.1f}", row.days())) : Cell("no plan", Status::bad);
      if (row.plan) cell.heat = most > least ? (row.days() - least) / (most - least) : 0;
      cells.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Rank correlation of days with each numeric key, the strongest first.
std::optional<Chart> influence(const WhatIf& result) {
  std::vector<const SweptAxis*> axes;
  for (const SweptAxis& axis : result.axes)
    if (axis.rank_correlation) axes.push_back(&axis);
  if (axes.size() < 2) return {};
  std::ranges::stable_sort(axes, [](const SweptAxis* a, const SweptAxis* b) {
    return std::abs(*a->rank_correlation) > std::abs(*b->rank_correlation);
  });
  Chart chart{.kind = ChartKind::bar,
              .title = "Which key days go with",
              .series = {{.name = "rank correlation with days"}},
              .value_axis = "rank correlation with days",
              .horizontal = true,
              .note =
                  "Spearman's rank correlation over all planned rows: 1 = days grow with the key in every row, -1 = "
                  "they fall, 0 = no order. It says how steady the effect is, not how large."};
  for (const SweptAxis* axis : axes) {
    chart.labels.push_back(axis->key);
    chart.series[0].values.push_back(*axis->rank_correlation);
  }
  return chart;
}

/// Selected columns of a table, after its first `kept` columns.
Table with_columns(const Table& table, std::size_t kept, const std::set<std::string>& names, const std::string& title) {
  Table out{.title = title};
  std::vector<std::size_t> chosen;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (c < kept || names.contains(table.columns[c].name)) {
      chosen.push_back(c);
      out.columns.push_back(table.columns[c]);
    }
  for (const std::vector<Cell>& row : table.rows) {
    out.rows.emplace_back();
    for (const std::size_t c : chosen) out.rows.back().push_back(row[c]);
  }
  return out;
}

/// The terminal's table, split into two that fit a page.
Section rows_section(const WhatIf& result) {
  const Table all = what_if_table(result);
  Table days =
      with_columns(all, result.axes.size(),
                   {"GPUs", "batch", "difference", "90 % of runs", "save every", "goodput", "P50", "P95", "layout"},
                   "Run and layout");
  Table step = with_columns(all, result.axes.size(),
                            {"step", "80 % interval", "extrapolated", "tokens/s/GPU", "MFU", "exposed",
                             "process memory", "could be better by"},
                            "Step");
  step.note = all.note;
  return {"rows", "Every row", {}, {std::move(days), std::move(step)}};
}

/// Writes the report's first lines, which name the best and the worst row.
void put_answer(const WhatIf& result, Report& report) {
  const WhatIfRow *first = nullptr, *last = nullptr;
  for (const WhatIfRow& row : result.rows) {
    if (!row.plan) continue;
    if (!first || row.days() < first->days()) first = &row;
    if (!last || row.days() > last->days()) last = &row;
  }
  report.status = first ? Status::none : Status::bad;
  report.answer = what_if_answer(result);
  if (!first)
    report.answer_range = result.rows.front().misfit;
  else if (first == last)
    report.answer_range = fmt::format("{:.1f} to {:.1f} days, {}.", first->plan->cost.days.p05,
                                      first->plan->cost.days.p95, plan_range(*first->plan));
  else
    report.answer_range =
        fmt::format("{:.1f} to {:.1f} days over {}. Shortest with {}; longest with {}.", first->days(), last->days(),
                    counted(result.rows.size(), "row"), values_of(result, *first), values_of(result, *last));
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

Report what_if_report(const WhatIf& result) {
  Report report;
  const StudySpec& study = result.rows.front().inputs.study;
  report.title = "What if: " + study.name;
  put_answer(result, report);
  Section compared{.id = "days", .title = "Days"};
  if (const auto chart = difference_chart(result)) compared.items.push_back(*chart);
  if (Chart chart = chart_of(result); !chart.labels.empty() || !chart.x.empty()) compared.items.push_back(chart);
  if (two_of_numbers(result)) compared.items.push_back(grid(result));
  if (const auto chart = influence(result)) compared.items.push_back(*chart);
  Section evidence{.id = "evidence", .title = "What it rests on", .paragraphs = what_if_notes(result)};
  for (std::size_t i = 0; i < result.rows.size(); ++i)
    if (!result.rows[i].plan)
      compared.items.push_back(
          Callout{Status::bad, "No plan: " + values_of(result, result.rows[i]), result.rows[i].misfit});
  report.sections = {std::move(compared), rows_section(result), std::move(evidence)};
  report.provenance = provenance(
      {{"configuration", fmt::format("study {}, hash of the first row {:016x}", study.name, hash_of(study.text))},
       {"seed", std::to_string(study.seed)},
       {"times", result.rows.front().inputs.basis}});
  report.payload = what_if_json(result);
  return report;
}

std::string what_if_csv(const WhatIf& result) {
  const std::vector<const char*> figures{"gpus",
                                         "global_train_batch_size",
                                         "difference_days_p50",
                                         "difference_days_p05",
                                         "difference_days_p95",
                                         "could_be_better",
                                         "step_s",
                                         "low_s",
                                         "high_s",
                                         "tokens_per_s_per_gpu",
                                         "mfu",
                                         "exposed_communication_s",
                                         "process_bytes",
                                         "interval_s",
                                         "goodput",
                                         "days_p50",
                                         "days_p95",
                                         "gpu_hours_p50",
                                         "money_p50",
                                         "money_p95",
                                         "kwh_p50",
                                         "layout",
                                         "recompute",
                                         "microbatch"};
  std::string out;
  for (const SweptAxis& axis : result.axes) out += csv_field(axis.key) + ",";
  out += fmt::format("fits,{}\n", fmt::join(figures, ","));
  const nlohmann::json document = what_if_json(result);
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const nlohmann::json& row = document["rows"][i];
    for (const std::string& value : result.rows[i].values) out += csv_field(value) + ",";
    out += row["fits"].dump();
    for (const char* figure : figures) {
      const nlohmann::json value = row.value(figure, nlohmann::json());
      out += "," + (value.is_null() ? "" : value.is_string() ? csv_field(value.get<std::string>()) : value.dump());
    }
    out += "\n";
  }
  return out;
}

std::vector<std::filesystem::path> write_what_if(const WhatIf& result, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = write_report(what_if_report(result), folder, "whatif");
  files.push_back(folder / "whatif.csv");
  write_file_atomically(files.back(), what_if_csv(result));
  return files;
}

}  // namespace wt
