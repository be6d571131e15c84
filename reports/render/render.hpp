// The renderers without options; text_report.hpp is the one for terminals. Each calls check() first. Bytes that are not
// UTF-8 become U+FFFD.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/model/report.hpp"

namespace wt {

/// The complete report as JSON, its "twin", schema "windtunnel.report/1". Numbers that are not finite are null.
nlohmann::json report_json(const Report& report);
/// Strict reader of the twin, to render a saved report again. Throws Error{usage} with origin, pointer, found, allowed.
Report report_from_json(const nlohmann::json& document, const std::string& origin);
/// The text of a JSON document as this project writes it: two spaces, a newline at the end.
std::string json_text(const nlohmann::json& document);

/// GitHub's Markdown: pipe tables, charts as folded tables, everything escaped.
std::string markdown_report(const Report& report);
/// A single table; and a text, escaped for a paragraph or a table cell.
std::string markdown_table(const Table& table);
std::string markdown_text(const std::string& text);

/// One self-contained file that opens offline: it contains style, chart library and JSON twin. About 230 kB plus the
/// report.
std::string html_report(const Report& report);

}  // namespace wt
