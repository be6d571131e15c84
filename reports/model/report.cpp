#include "reports/model/report.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"

namespace wt {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

void expect_length(std::size_t found, std::size_t allowed, const std::string& where, const char* what) {
  if (found != allowed)
    throw_runtime("report: {}: found {} {}, allowed {}; fill one for each", where, found, what, allowed);
}

void check_table(const Table& table, const std::string& where) {
  for (const auto& row : table.rows) expect_length(row.size(), table.columns.size(), where, "cells in a row");
  if (!table.explore) return;
  const Explore& e = *table.explore;
  std::vector<std::size_t> used{e.middle, e.low, e.high, e.paid, e.paid_high, e.words};
  used.insert(used.end(), e.choices.begin(), e.choices.end());
  for (const std::size_t column : used)
    if (column >= table.columns.size())
      throw_runtime("report: {}: found column {} to explore, allowed are those below {}; correct it", where, column,
                    table.columns.size());
  if (e.start >= table.rows.size())
    throw_runtime("report: {}: found row {} to start at, allowed are those below {}; correct it", where, e.start,
                  table.rows.size());
}

/// For floating bars, low and high are only drawn positions; `values` holds the numbers.
bool floats(const Chart& chart) { return chart.kind == ChartKind::waterfall || chart.kind == ChartKind::tornado; }

bool has_range(const Chart& chart, const Series& series) { return !series.low.empty() && !floats(chart); }

void check_chart(const Chart& chart, const std::string& where) {
  const bool over_x = !chart.x.empty();
  if (over_x && chart.kind != ChartKind::line)
    throw_runtime("report: {}: found x positions on a {}, allowed on a line; use labels", where, to_string(chart.kind));
  if (!over_x && !chart.marks.empty())
    throw_runtime("report: {}: found marks on labels, allowed on x positions; leave them out", where);
  const std::size_t points = over_x ? chart.x.size() : chart.labels.size();
  if (chart.named_x) expect_length(chart.labels.size(), chart.x.size(), where, "labels of x positions");
  const bool floating = floats(chart);
  if (chart.kind == ChartKind::timeline)
    if (std::set<std::string> rows(chart.labels.begin(), chart.labels.end()); rows.size() < chart.labels.size())
      throw_runtime("report: {}: found {} labels of which {} differ, allowed one row a label; rename rows", where,
                    chart.labels.size(), rows.size());
  for (const Series& series : chart.series) {
    const std::string at = where + ", series '" + series.name + "'";
    if (chart.kind == ChartKind::timeline) {
      for (const Span& span : series.spans)
        if (span.row >= chart.labels.size() || !(span.start <= span.end))
          throw_runtime(
              "report: {}: found span '{}' on row {} from {} to {}, allowed rows below {} and a start not after the "
              "end; correct the span",
              at, span.name, span.row, span.start, span.end, chart.labels.size());
      continue;
    }
    expect_length(series.values.size(), points, at, "values");
    if (floating || !series.low.empty() || !series.high.empty()) {
      expect_length(series.low.size(), points, at, "low ends");
      expect_length(series.high.size(), points, at, "high ends");
    }
  }
}

std::string range_text(const Series& series, std::size_t i) {
  if (series.low.empty() || !std::isfinite(series.low[i]) || !std::isfinite(series.high[i])) return "";
  return format_number(series.low[i]) + " to " + format_number(series.high[i]);
}

/// "resumed: at 41, 83", listing only the first marks.
std::string marks_text(const Chart& chart) {
  constexpr std::size_t kListed = 20;
  if (chart.marks.empty()) return "";
  std::string out = chart.marks_name + ": at ";
  for (std::size_t i = 0; i < std::min(kListed, chart.marks.size()); ++i)
    out += (i == 0 ? "" : ", ") + format_number(chart.marks[i].x);
  if (chart.marks.size() > kListed) out += fmt::format(" and {} more", chart.marks.size() - kListed);
  return out;
}

std::string sentences(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : out.back() == '.' ? " " : ". ") + part;
  return out;
}

/// All rows, or evenly spaced ones including the first and the last.
std::vector<std::size_t> shown_rows(std::size_t rows, std::size_t at_most) {
  std::vector<std::size_t> out;
  const std::size_t n = std::min(rows, std::max<std::size_t>(at_most, 2));
  for (std::size_t i = 0; i < n; ++i) out.push_back(n == rows ? i : i * (rows - 1) / (n - 1));
  return out;
}

}  // namespace

Cell::Cell(double value, std::optional<Evidence> from, Status judged)
    : Cell(value, format_number(value), from, judged) {}
Cell::Cell(double value, std::string shown, std::optional<Evidence> from, Status judged)
    : text(std::move(shown)), status(judged) {
  if (!std::isfinite(value)) return;
  number = value;
  evidence = from;
}

void check(const Report& report) {
  std::set<std::string> ids;
  for (const Section& section : report.sections) {
    if (section.id.empty() ||
        section.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
      throw_runtime("report: section '{}': found id '{}', allowed a-z, 0-9 and '-'; give it a short name",
                    section.title, section.id);
    if (section.id == "provenance" || section.id == "report-data")
      throw_runtime("report: section '{}': found id '{}', which the page uses itself; choose another", section.title,
                    section.id);
    if (!ids.insert(section.id).second)
      throw_runtime("report: section '{}': found id '{}' twice, allowed once; rename one", section.title, section.id);
    for (const Item& item : section.items)
      std::visit(
          Overloaded{[&](const Table& table) { check_table(table, section.id + ", table '" + table.title + "'"); },
                     [&](const Chart& chart) { check_chart(chart, section.id + ", chart '" + chart.title + "'"); },
                     [](const auto&) {}},
          item);
  }
}

std::string to_string(Status status) { return word_for(status, std::array{"none", "good", "warn", "bad"}); }

std::string to_string(Align align) { return align == Align::right ? "right" : "left"; }

std::string to_string(ChartKind kind) {
  static constexpr const char* words[] = {"bar",       "grouped_bar", "stacked_bar", "line",
                                          "waterfall", "tornado",     "timeline"};
  return word_for(kind, words);
}

std::string format_number(double value) {
  if (!std::isfinite(value)) return "n/a";
  const double magnitude = std::abs(value);
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e15)) return fmt::format("{:.3e}", value);
  if (magnitude < 999.95) return fmt::format("{:.4g}", value);
  std::string digits = fmt::format("{:.0f}", magnitude);
  for (std::size_t at = digits.size(); at > 3;)
    digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(at -= 3), ',');
  return value < 0 ? fmt::format("-{}", digits) : digits;
}

std::string format_range(double low, double high) {
  if (!std::isfinite(high) || !(low >= 1e-4 && low < 999.5)) return format_number(low) + " to " + format_number(high);
  const int decimals = std::max(0, 2 - static_cast<int>(std::floor(std::log10(low))));
  return fmt::format("{:.{}f} to {:.{}f}", low, decimals, high, decimals);
}

std::string with_unit(const std::string& name, const std::string& unit) {
  if (unit.empty()) return name;
  return name.empty() ? "[" + unit + "]" : name + " [" + unit + "]";
}

Table chart_table(const Chart& chart, std::size_t at_most) {
  Table table{chart.title, {}, {}, chart.note};
  if (chart.kind == ChartKind::timeline) {
    table.columns = {{chart.label_axis.empty() ? "row" : chart.label_axis, "", Align::left},
                     "series",
                     "what",
                     numeric("start", chart.unit),
                     numeric("end", chart.unit)};
    std::map<std::size_t, std::vector<std::vector<Cell>>> by_row;
    for (const Series& series : chart.series)
      for (const Span& span : series.spans)
        by_row[span.row].push_back({chart.labels[span.row],
                                    series.name,
                                    span.name,
                                    {span.start, series.evidence},
                                    {span.end, series.evidence}});
    for (auto& [row, cells] : by_row) std::move(cells.begin(), cells.end(), std::back_inserter(table.rows));
    return table;
  }
  table.columns.push_back({chart.label_axis, "", chart.x.empty() || chart.named_x ? Align::left : Align::right});
  for (const Series& series : chart.series) {
    table.columns.push_back({series.name, chart.unit, Align::right});
    if (has_range(chart, series)) table.columns.push_back(numeric("from - to", chart.unit));
  }
  const std::size_t points = chart.x.empty() ? chart.labels.size() : chart.x.size();
  const std::vector<std::size_t> shown = shown_rows(points, chart.x.empty() ? SIZE_MAX : at_most);
  for (const std::size_t i : shown) {
    std::vector<Cell> row{chart.x.empty() || chart.named_x ? Cell(chart.labels[i]) : Cell(chart.x[i])};
    for (const Series& series : chart.series) {
      row.emplace_back(series.values[i], series.evidence);
      if (has_range(chart, series)) row.emplace_back(range_text(series, i));
    }
    table.rows.push_back(std::move(row));
  }
  const std::string line = chart.line ? chart.line->label + ": " + format_number(chart.line->value) +
                                            (chart.unit.empty() ? "" : " ") + chart.unit
                                      : "";
  const std::string fewer =
      shown.size() < points ? fmt::format("{} of {} points; the JSON has all", shown.size(), points) : "";
  table.note = sentences({line, marks_text(chart), fewer, chart.note});
  return table;
}

}  // namespace wt
