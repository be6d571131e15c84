#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/render/assets.hpp"
#include "reports/render/render.hpp"

namespace wt {
namespace {

// A timeline may have tens of thousands of spans; the twin in the page has them all.
constexpr std::size_t kMaxFallbackRows = 2000;

/// For element content and quoted attributes.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\0':
        out += "\xEF\xBF\xBD";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// JSON inside a script element: no '<' may appear, or a name could close the element.
std::string for_script(std::string json) {
  std::string out;
  for (char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

const char* mark(Status status) {
  switch (status) {
    case Status::good:
      return "\u2713 ";
    case Status::warn:
      return "! ";
    case Status::bad:
      return "\u2717 ";
    case Status::none:
      break;
  }
  return "";
}

std::string cell_html(const Cell& cell) {
  std::string out = mark(cell.status) + escaped(cell.text);
  if (cell.evidence) {
    const std::string word = to_string(*cell.evidence);
    out += fmt::format(R"(<span class="tag {0}">{0}</span>)", word);
  }
  return out;
}

/// " good", to be put behind another class.
std::string class_name(Status status) { return status == Status::none ? "" : fmt::format(" {}", to_string(status)); }

std::string class_of(Align align, Status status) {
  std::string names = align == Align::right ? "right" : "";
  names += class_name(status);
  return names.empty() ? "" : fmt::format(" class=\"{}\"", names);
}

/// Pixels that a chart needs for its labels to be readable.
std::size_t height_of(const Chart& chart) {
  const std::size_t rows = chart.labels.size();
  const bool lying = chart.horizontal || chart.kind == ChartKind::waterfall || chart.kind == ChartKind::tornado ||
                     chart.kind == ChartKind::timeline;
  if (!lying) return 330;
  const bool grouped = chart.kind == ChartKind::grouped_bar;
  const std::size_t per_row = chart.kind == ChartKind::timeline ? 24 : grouped ? 14 + 22 * chart.series.size() : 38;
  // Browsers refuse canvases above 32,767 pixels, which are 16,383 where a pixel is two.
  return std::min<std::size_t>(110 + std::max<std::size_t>(rows, 1) * per_row, 16'000);
}

class Page {
 public:
  void table(const Table& table) {
    out += R"(<div class="scroll"><table><thead><tr>)";
    for (const Column& column : table.columns) {
      out += fmt::format("<th scope=\"col\"{}>{}", class_of(column.align, Status::none), escaped(column.name));
      if (!column.unit.empty()) out += " <span class=\"unit\">[" + escaped(column.unit) + "]</span>";
      out += "</th>";
    }
    out += "</tr></thead><tbody>\n";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (std::size_t c = 0; c < row.size(); ++c)
        out += "<td" + class_of(table.columns[c].align, row[c].status) + ">" + cell_html(row[c]) + "</td>";
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
    note(table.note);
  }

  void note(const std::string& text) {
    if (!text.empty()) out += "<p class=\"note\">" + escaped(text) + "</p>\n";
  }

  void heading(const std::string& title) {
    if (!title.empty()) out += "<h3>" + escaped(title) + "</h3>\n";
  }

  void item(const Table& item, const std::string&) {
    out += item.rows.size() > 20 ? "<div class=\"item long\">" : "<div class=\"item\">";
    heading(item.title);
    table(item);
    out += "</div>\n";
  }

  void item(const Chart& chart, const std::string& place) {
    out += "<div class=\"item\">";
    heading(chart.title);
    out += fmt::format(
        "<div class=\"chart\" style=\"height:{}px\"><canvas data-chart=\"{}\" role=\"img\" aria-label=\"{}\"></canvas>"
        "</div>\n",
        height_of(chart), place, escaped(chart.title + "; the numbers are in the table below"));
    note(chart.note);
    Table numbers = chart_table(chart);
    if (numbers.note == chart.note) numbers.note.clear();
    if (numbers.rows.size() > kMaxFallbackRows) {
      numbers.note = fmt::format("The first {} of {} rows; all are in the JSON in this page.", kMaxFallbackRows,
                                 numbers.rows.size());
      numbers.rows.resize(kMaxFallbackRows);
    }
    out += "<details><summary>Numbers of this chart</summary>";
    table(numbers);
    out += "</details></div>\n";
  }

  void item(const KeyValues& item, const std::string&) {
    out += "<div class=\"item\">";
    heading(item.title);
    out += "<dl>\n";
    for (const auto& [key, value] : item.entries)
      out +=
          "<dt>" + escaped(key) + "</dt><dd" + class_of(Align::left, value.status) + ">" + cell_html(value) + "</dd>\n";
    out += "</dl></div>\n";
  }

  void item(const Callout& item, const std::string&) {
    out += fmt::format("<div class=\"item callout{}\">", class_name(item.status));
    heading(mark(item.status) + item.title);
    if (!item.text.empty()) out += "<p>" + escaped(item.text) + "</p>";
    out += "</div>\n";
  }

  std::string out;
};

std::string provenance_title(const Report& report) {
  return report.provenance.title.empty() ? "Provenance" : report.provenance.title;
}

}  // namespace

std::string html_report(const Report& report) {
  const std::string twin =
      for_script(report_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  const bool provenance = !report.provenance.entries.empty();
  Page page;
  page.out.reserve(assets::chart_js.size() + 4 * twin.size() + 40'000);
  page.out +=
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped(report.title) + "</title>\n<style>\n";
  page.out += assets::report_css;
  page.out +=
      "</style></head>\n<body><div class=\"page\">\n<header><p class=\"title\">" + escaped(report.title) + "</p>\n";
  page.out += fmt::format("<h1 class=\"answer{}\">", class_name(report.status)) + escaped(report.answer) + "</h1>\n";
  if (!report.answer_range.empty()) page.out += "<p class=\"range\">" + escaped(report.answer_range) + "</p>\n";
  page.out += "</header>\n<nav aria-label=\"Sections\"><ul>\n";
  for (const Section& section : report.sections)
    page.out += "<li><a href=\"#" + section.id + "\">" + escaped(section.title) + "</a></li>\n";
  if (provenance) page.out += "<li><a href=\"#provenance\">" + escaped(provenance_title(report)) + "</a></li>\n";
  page.out +=
      "</ul></nav>\n<main>\n<noscript><p>The charts need JavaScript; their numbers are in the tables below "
      "them.</p></noscript>\n";
  for (std::size_t s = 0; s < report.sections.size(); ++s) {
    const Section& section = report.sections[s];
    page.out += "<section id=\"" + section.id + "\"><h2>" + escaped(section.title) + "</h2>\n";
    for (const std::string& text : section.paragraphs) page.out += "<p>" + escaped(text) + "</p>\n";
    for (std::size_t i = 0; i < section.items.size(); ++i)
      std::visit([&](const auto& shown) { page.item(shown, fmt::format("{}/{}", s, i)); }, section.items[i]);
    page.out += "</section>\n";
  }
  if (provenance) {
    page.out += "<section id=\"provenance\"><h2>" + escaped(provenance_title(report)) + "</h2>\n";
    page.item(KeyValues{"", report.provenance.entries}, "");
    page.out += "</section>\n";
  }
  page.out += "</main></div>\n<script type=\"application/json\" id=\"report-data\">" + twin + "</script>\n<script>\n";
  page.out += assets::chart_js;
  page.out += "</script>\n<script>\n";
  page.out += assets::report_js;
  page.out += "</script></body></html>\n";
  return page.out;
}

}  // namespace wt
