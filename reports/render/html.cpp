#include <fmt/core.h>

#include <algorithm>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>

#include "reports/render/assets.hpp"
#include "reports/render/render.hpp"

namespace wt {
namespace {

namespace mustache = kainjow::mustache;
using nlohmann::json;

// A timeline may have tens of thousands of spans; all of them are in the page's JSON twin.
constexpr std::size_t kMaxFallbackRows = 2000;

/// JSON inside a script element. '<' is escaped, because a name could close the element.
std::string for_script(std::string json) {
  std::string out;
  for (char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

const char* icon(Status status) {
  static constexpr const char* icons[] = {"", "\u2713 ", "! ", "\u2717 "};
  return icons[static_cast<std::size_t>(status)];
}

/// " good", to append to another class.
std::string class_name(Status status) { return status == Status::none ? "" : fmt::format(" {}", to_string(status)); }

/// `nothing`: a cell without a figure, which phones do not show.
std::string class_of(Align align, Status status, bool nothing = false) {
  std::string names = align == Align::right ? "right" : "";
  names += class_name(status);
  if (nothing) names += names.empty() ? "nothing" : " nothing";
  return names.empty() ? "" : fmt::format(" class=\"{}\"", names);
}

/// Pixels for readable labels.
std::size_t height_of(const Chart& chart) {
  const std::size_t rows = chart.labels.size();
  const bool lying = chart.horizontal || chart.kind == ChartKind::waterfall || chart.kind == ChartKind::tornado ||
                     chart.kind == ChartKind::timeline;
  if (!lying) return 330;
  const bool grouped = chart.kind == ChartKind::grouped_bar;
  const std::size_t per_row = chart.kind == ChartKind::timeline ? 24 : grouped ? 14 + 22 * chart.series.size() : 38;
  // Browsers refuse canvases above 32,767 device pixels, which are 16,383 CSS pixels on a screen with a ratio of two.
  return std::min<std::size_t>(110 + std::max<std::size_t>(rows, 1) * per_row, 16'000);
}

json cell_data(const Cell& cell, Align align) {
  return {{"class", class_of(align, cell.status, cell.text.empty() || cell.text == "-") +
                        (cell.heat ? fmt::format(" style=\"--heat:{:.3g}\"", *cell.heat) : "")},
          {"shown", icon(cell.status) + cell.text},
          {"evidence", cell.evidence ? to_string(*cell.evidence) : ""}};
}

/// A table with more columns is set closer. On a phone each of its rows becomes a card with its cells stacked.
constexpr std::size_t kManyColumns = 5, kCloseColumns = 8;

bool shaded(const Table& table) {
  for (const auto& row : table.rows)
    for (const Cell& cell : row)
      if (cell.heat) return true;
  return false;
}

/// Whether columns are name, value and meaning: on a phone the meaning goes below.
bool explains(const Table& table) {
  return table.columns.size() == 3 &&
         std::ranges::all_of(table.columns, [](const Column& column) { return column.align == Align::left; });
}

json table_data(const Table& table) {
  json columns = json::array(), rows = json::array();
  const bool cards = table.columns.size() >= kManyColumns && !shaded(table);
  for (const Column& column : table.columns)
    columns.push_back({{"class", class_of(column.align, Status::none)}, {"name", column.name}, {"unit", column.unit}});
  for (const auto& row : table.rows) {
    json& cells = rows.emplace_back()["cells"] = json::array();
    for (std::size_t c = 0; c < row.size(); ++c) {
      cells.push_back(cell_data(row[c], table.columns[c].align));
      cells.back()["label"] = cards ? with_unit(table.columns[c].name, table.columns[c].unit) : "";
    }
  }
  std::string names = cards ? "cards" : shaded(table) ? "shaded" : explains(table) ? "explains" : "";
  if (table.columns.size() >= kCloseColumns) names += names.empty() ? "close" : " close";
  return {{"columns", std::move(columns)}, {"rows", std::move(rows)}, {"note", table.note}, {"table_class", names}};
}

json item_data(const Table& item, const std::string& place) {
  return {{"item_class", item.rows.size() > 20 ? " long" : ""},
          {"heading", item.title},
          {"explore", item.explore ? place : ""},
          {"table", table_data(item)}};
}

json item_data(const Chart& item, const std::string& place) {
  Table numbers = chart_table(item);
  if (numbers.note == item.note) numbers.note.clear();
  if (numbers.rows.size() > kMaxFallbackRows) {
    numbers.note = fmt::format("The first {} of {} rows; all are in the JSON in this page.", kMaxFallbackRows,
                               numbers.rows.size());
    numbers.rows.resize(kMaxFallbackRows);
  }
  return {{"heading", item.title},
          {"chart",
           {{"height", std::to_string(height_of(item))},
            {"place", place},
            {"label", item.title + "; the numbers are in the table below"},
            {"chart_note", item.note}}},
          {"table", table_data(numbers)}};
}

json item_data(const KeyValues& item, const std::string&) {
  json entries = json::array();
  for (const auto& [key, value] : item.entries) entries.emplace_back(cell_data(value, Align::left))["key"] = key;
  return {{"heading", item.title}, {"values", {{"entries", std::move(entries)}}}};
}

json item_data(const Callout& item, const std::string&) {
  return {{"item_class", " callout" + class_name(item.status)},
          {"heading", icon(item.status) + item.title},
          {"callout", item.text}};
}

/// `number` and the item's number tell a chart's script where its data is in the JSON twin.
json section_data(const Section& section, std::size_t number) {
  json items = json::array();
  for (std::size_t i = 0; i < section.items.size(); ++i)
    items.push_back(std::visit([&](const auto& item) { return item_data(item, fmt::format("{}/{}", number, i)); },
                               section.items[i]));
  return {{"id", section.id},
          {"section_title", section.title},
          {"folded", section.folded ? "folded" : ""},
          {"open", section.folded ? "" : "open"},
          {"paragraphs", section.paragraphs},
          {"items", std::move(items)}};
}

/// Leaves out empty texts, because the template tests whether a name exists.
mustache::data template_data(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  mustache::data out(value.is_array() ? mustache::data::type::list : mustache::data::type::object);
  for (const auto& [key, each] : value.items())
    if (value.is_array())
      out << template_data(each);
    else if (each != "")
      out[key] = template_data(each);
  return out;
}

}  // namespace

std::string html_report(const Report& report) {
  check(report);  // the layout below relies on the tables' shapes
  json sections = json::array();
  for (const Section& section : report.sections) sections.push_back(section_data(section, sections.size()));
  if (const KeyValues& provenance = report.provenance; !provenance.entries.empty())
    sections.push_back(section_data({.id = "provenance",
                                     .title = provenance.title.empty() ? "Provenance" : provenance.title,
                                     .items = {KeyValues{"", provenance.entries}}},
                                    sections.size()));
  const json page = {{"report_title", report.title},
                     {"answer", report.answer},
                     {"answer_class", class_name(report.status)},
                     {"answer_range", report.answer_range},
                     {"sections", std::move(sections)},
                     {"twin", for_script(report_json(report).dump(-1, ' ', false, json::error_handler_t::replace))},
                     {"css", assets::report_css},
                     {"chart_js", assets::chart_js},
                     {"chart_text_js", assets::chart_text_js},
                     {"explore_js", assets::explore_js},
                     {"report_js", assets::report_js}};
  return mustache::mustache(std::string(assets::report_html)).render(template_data(page));
}

}  // namespace wt
