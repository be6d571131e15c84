#include <cmath>

#include "configs/base/json_members.hpp"
#include "reports/render/render.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const Cell& cell) {
  out["text"] = cell.text;
  if (cell.number) out["number"] = *cell.number;
  if (cell.evidence) out["evidence"] = to_string(*cell.evidence);
  if (cell.status != Status::none) out["status"] = to_string(cell.status);
  if (cell.heat) out["heat"] = *cell.heat;
}
static void to_json(json& out, Align align) { out = to_string(align); }
WT_TO_JSON(Column, name, unit, align)
WT_TO_JSON(Span, row, start, end, name)
WT_TO_JSON(Mark, x, label)
WT_TO_JSON(ReferenceLine, value, label)

/// A number that is none is null.
static json numbers(const std::vector<double>& values) {
  json out = json::array();
  for (double value : values) out.push_back(std::isfinite(value) ? json(value) : json(nullptr));
  return out;
}

static void to_json(json& out, const Series& series) {
  out = {{"name", series.name}, {"values", numbers(series.values)}};
  if (!series.low.empty()) out["low"] = numbers(series.low);
  if (!series.high.empty()) out["high"] = numbers(series.high);
  if (series.evidence) out["evidence"] = to_string(*series.evidence);
  if (series.points) out["points"] = true;
  if (!series.spans.empty()) out["spans"] = series.spans;
}
static void to_json(json& out, const Explore& e) {
  out = {{"choices", e.choices}, {"middle", e.middle}, {"low", e.low},
         {"high", e.high},       {"paid", e.paid},     {"paid_high", e.paid_high},
         {"words", e.words},     {"start", e.start},   {"currency", e.currency}};
  if (e.price) out["price"] = *e.price;
  if (e.limit) out["limit"] = *e.limit;
}
static void to_json(json& out, const Table& table) {
  out = {{"type", "table"},
         {"title", table.title},
         {"columns", table.columns},
         {"rows", table.rows},
         {"note", table.note}};
  if (table.explore) out["explore"] = *table.explore;
}
static void to_json(json& out, const Chart& chart) {
  out = {{"type", "chart"},
         {"kind", to_string(chart.kind)},
         {"title", chart.title},
         {"unit", chart.unit},
         {"labels", chart.labels},
         {"series", chart.series},
         {"label_axis", chart.label_axis},
         {"value_axis", chart.value_axis},
         {"horizontal", chart.horizontal},
         {"note", chart.note}};
  if (!chart.x.empty()) out["x"] = numbers(chart.x);
  if (chart.named_x) out["named_x"] = true;
  if (!chart.marks.empty()) out["marks"] = chart.marks, out["marks_name"] = chart.marks_name;
  if (chart.line) out["line"] = *chart.line;
}
static void to_json(json& out, const KeyValues& item) {
  json entries = json::array();  // an array, because the order of entries is part of the report
  for (const auto& [key, value] : item.entries) entries.push_back({{"key", key}, {"value", value}});
  out = {{"type", "key_values"}, {"title", item.title}, {"entries", entries}};
}
static void to_json(json& out, const Callout& item) {
  out = {{"type", "callout"}, {"status", to_string(item.status)}, {"title", item.title}, {"text", item.text}};
}
static void to_json(json& out, const Item& item) {
  std::visit([&](const auto& shown) { to_json(out, shown); }, item);
}
static void to_json(json& out, const Section& section) {
  out = {{"id", section.id}, {"title", section.title}, {"paragraphs", section.paragraphs}, {"items", section.items}};
  if (section.folded) out["folded"] = true;
}

json report_json(const Report& report) {
  check(report);
  json provenance = report.provenance;
  provenance.erase("type");
  return {{"schema", "windtunnel.report/1"},
          {"title", report.title},
          {"answer", report.answer},
          {"answer_range", report.answer_range},
          {"status", to_string(report.status)},
          {"sections", report.sections},
          {"provenance", provenance},
          {"payload", report.payload}};
}

std::string json_text(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace wt
