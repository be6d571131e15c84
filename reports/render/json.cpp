#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/render/render.hpp"

namespace wt {
namespace {

using nlohmann::json;

json numbers(const std::vector<double>& values) {
  json out = json::array();
  for (double value : values) out.push_back(std::isfinite(value) ? json(value) : json(nullptr));
  return out;
}

json to_json(const Cell& cell) {
  json out{{"text", cell.text}};
  if (cell.number) out["number"] = *cell.number;
  if (cell.evidence) out["evidence"] = to_string(*cell.evidence);
  if (cell.status != Status::none) out["status"] = to_string(cell.status);
  if (cell.heat) out["heat"] = *cell.heat;
  return out;
}

json to_json(const Table& table) {
  json columns = json::array(), rows = json::array();
  for (const Column& column : table.columns)
    columns.push_back({{"name", column.name}, {"unit", column.unit}, {"align", to_string(column.align)}});
  for (const auto& row : table.rows) {
    rows.push_back(json::array());
    for (const Cell& cell : row) rows.back().push_back(to_json(cell));
  }
  return {{"type", "table"}, {"title", table.title}, {"columns", columns}, {"rows", rows}, {"note", table.note}};
}

json to_json(const Series& series) {
  json out{{"name", series.name}, {"values", numbers(series.values)}};
  if (!series.low.empty()) out["low"] = numbers(series.low);
  if (!series.high.empty()) out["high"] = numbers(series.high);
  if (series.evidence) out["evidence"] = to_string(*series.evidence);
  if (series.points) out["points"] = true;
  for (const Span& span : series.spans)
    out["spans"].push_back({{"row", span.row}, {"start", span.start}, {"end", span.end}, {"name", span.name}});
  return out;
}

json to_json(const Chart& chart) {
  json out{{"type", "chart"},
           {"kind", to_string(chart.kind)},
           {"title", chart.title},
           {"unit", chart.unit},
           {"labels", chart.labels},
           {"series", json::array()},
           {"label_axis", chart.label_axis},
           {"value_axis", chart.value_axis},
           {"horizontal", chart.horizontal},
           {"note", chart.note}};
  for (const Series& series : chart.series) out["series"].push_back(to_json(series));
  if (!chart.x.empty()) out["x"] = numbers(chart.x);
  for (const Mark& mark : chart.marks) out["marks"].push_back({{"x", mark.x}, {"label", mark.label}});
  if (!chart.marks.empty()) out["marks_name"] = chart.marks_name;
  if (chart.line) out["line"] = {{"value", chart.line->value}, {"label", chart.line->label}};
  return out;
}

json to_json(const KeyValues& item) {
  json entries = json::array();  // an array, because the order of entries is part of the report
  for (const auto& [key, value] : item.entries) entries.push_back({{"key", key}, {"value", to_json(value)}});
  return {{"type", "key_values"}, {"title", item.title}, {"entries", entries}};
}

json to_json(const Callout& item) {
  return {{"type", "callout"}, {"status", to_string(item.status)}, {"title", item.title}, {"text", item.text}};
}

}  // namespace

json report_json(const Report& report) {
  check(report);
  json sections = json::array();
  for (const Section& section : report.sections) {
    json items = json::array();
    for (const Item& item : section.items)
      items.push_back(std::visit([](const auto& shown) { return to_json(shown); }, item));
    sections.push_back(
        {{"id", section.id}, {"title", section.title}, {"paragraphs", section.paragraphs}, {"items", items}});
  }
  json provenance = to_json(report.provenance);
  provenance.erase("type");
  return {{"schema", "windtunnel.report/1"},
          {"title", report.title},
          {"answer", report.answer},
          {"answer_range", report.answer_range},
          {"status", to_string(report.status)},
          {"sections", sections},
          {"provenance", provenance},
          {"payload", report.payload}};
}

std::string json_text(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace wt
