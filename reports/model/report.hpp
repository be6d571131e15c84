// A report as data: statements in order, with their evidence. Commands fill it; the renderers (text, Markdown, JSON,
// HTML) add nothing, so that every format says the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

enum class Status { none, good, warn, bad };
enum class Align { left, right };

/// A table cell. `text` is what is shown; `number` is the same value for machines, unrounded, in the column's unit.
struct Cell {
  Cell() = default;
  Cell(const char* shown) : text(shown) {}
  Cell(std::string shown) : text(std::move(shown)) {}
  /// A number shown with four significant digits. If it is not finite: "n/a", without evidence.
  Cell(double value, std::optional<Evidence> from = {}, Status judged = Status::none);
  /// A number with its own text.
  Cell(double value, std::string shown, std::optional<Evidence> from = {}, Status judged = Status::none);
  /// A word with a status: {"passed", Status::good}.
  Cell(std::string shown, Status judged) : text(std::move(shown)), status(judged) {}

  std::string text;
  std::optional<double> number;
  std::optional<Evidence> evidence;
  Status status = Status::none;
  std::optional<double> heat = {};  ///< shading from 0 (the table's minimum) to 1 (its maximum)
};

struct Column {
  Column(const char* shown) : name(shown) {}
  Column(std::string shown, std::string of = {}, Align to = Align::left)
      : name(std::move(shown)), unit(std::move(of)), align(to) {}

  std::string name = {};
  std::string unit = {};  ///< "" where the cells contain it
  Align align = Align::left;
};
/// A column of numbers, aligned right.
inline Column numeric(std::string name, std::string unit = {}) {
  return {std::move(name), std::move(unit), Align::right};
}

/// Controls of a page above a table: its reader picks a row by what `choices` hold, gives a price and a limit, and sees
/// that row. The page multiplies and compares; it interpolates nothing. Numbers are indices of columns.
struct Explore {
  std::vector<std::size_t> choices = {};
  std::size_t middle = 0, low = 0, high = 0;  ///< what the limit is for, with its interval; `high` is compared
  std::size_t paid = 0, paid_high = 0;        ///< what the price is for
  std::size_t words = 0;                      ///< shown as it is; of a row without numbers: why
  std::size_t start = 0;                      ///< index of the row that is picked at first
  std::string currency = {};
  std::optional<double> price = {}, limit = {};  ///< at first
};

struct Table {
  std::string title = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  ///< each as long as `columns`
  std::string note = {};
  std::optional<Explore> explore = {};
};

/// bar, grouped_bar and stacked_bar: values over labels, one bar a series; low and high are whiskers (not on stacked
/// bars). line: values over labels or over `x`; low and high are a band. waterfall, tornado: horizontal floating bars
/// from low to high, made by waterfall() and tornado() of charts.hpp. timeline: spans on rows, made by timeline_chart()
/// of timeline_chart.hpp or by hand.
enum class ChartKind { bar, grouped_bar, stacked_bar, line, waterfall, tornado, timeline };

struct Span {
  std::size_t row = 0;  ///< index into Chart::labels
  double start = 0, end = 0;
  std::string name = {};
};

struct Series {
  std::string name = {};
  std::vector<double> values = {};  ///< one a label; NaN is a gap
  std::vector<double> low = {};     ///< empty, or as long as values
  std::vector<double> high = {};    ///< with `low`
  std::vector<Span> spans = {};     ///< timeline only
  bool points = false;              ///< line only: unconnected points
  std::optional<Evidence> evidence = {};
};

struct ReferenceLine {
  double value = 0;
  std::string label = {};
};

/// An event at a position of a line chart's x axis.
struct Mark {
  double x = 0;
  std::string label = {};
};

struct Chart {
  ChartKind kind = ChartKind::bar;
  std::string title = {};
  std::string unit = {};  ///< of the values
  std::vector<std::string> labels = {};
  std::vector<Series> series = {};
  std::string label_axis = {};             ///< title of the axis of the labels
  std::string value_axis = {};             ///< title of the axis of the values; the unit is added
  std::vector<double> x = {};              ///< line only: positions on a linear axis, instead of labels
  bool named_x = false;                    ///< with x: the axis shows the labels, one for each position
  std::vector<Mark> marks = {};            ///< with x only: vertical lines
  std::string marks_name = {};             ///< what the marks show: "resumed"
  std::optional<ReferenceLine> line = {};  ///< a limit, a baseline
  bool horizontal = false;                 ///< horizontal bars, for long labels
  std::string note = {};
};

struct KeyValues {
  std::string title = {};
  std::vector<std::pair<std::string, Cell>> entries = {};
};

struct Callout {
  Status status = Status::none;
  std::string title = {};
  std::string text = {};
};

using Item = std::variant<Table, Chart, KeyValues, Callout>;

struct Section {
  std::string id = {};  ///< anchor: a-z, 0-9 and '-', unique
  std::string title = {};
  std::vector<std::string> paragraphs = {};
  std::vector<Item> items = {};
  bool folded = false;  ///< a page shows its title alone until it is opened or printed
};

struct Report {
  std::string title = {};
  std::string answer = {};        ///< one sentence
  std::string answer_range = {};  ///< its uncertainty: "3.1 to 3.4 days (90 %)"
  Status status = Status::none;
  std::vector<Section> sections = {};
  KeyValues provenance = {};    ///< command, configuration hash, commit, seed, versions, machine
  nlohmann::json payload = {};  ///< the result behind the report, for machines
};

/// Throws Error{runtime} with section and item: a row or series of the wrong length, a span outside the rows, two rows
/// with one name, an id used twice or unfit as an anchor. Every renderer calls it first.
void check(const Report& report);

std::string to_string(Status status);
std::string to_string(Align align);
std::string to_string(ChartKind kind);

/// Four significant digits, thousands with commas, no exponent between 1e-4 and 1e15; "n/a" when not finite.
std::string format_number(double value);
/// "5.24 to 6.89", "0.0123 to 0.0307": three significant digits of the lower end, the upper end with as many decimals.
std::string format_range(double low, double high);
/// A chart's numbers as a table, for text, Markdown and screen readers. A timeline has one row per span. If a line over
/// x has more than `at_most` points, evenly spaced ones are listed, and the note says so.
Table chart_table(const Chart& chart, std::size_t at_most = SIZE_MAX);
/// "predicted step [s]", "[s]" or "predicted step".
std::string with_unit(const std::string& name, const std::string& unit);

}  // namespace wt
