// The written forms of a report that have no options; text for terminals is in text.hpp. Each refuses a report that
// check() refuses. Bytes that are not UTF-8 become U+FFFD.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/model/report.hpp"

namespace wt {

/// The complete twin, schema "windtunnel.report/1": what is not finite is null.
nlohmann::json report_json(const Report& report);
/// Strict reader of the twin, for drawing a kept report again. Throws Error{usage} naming origin, pointer, found,
/// allowed.
Report report_from_json(const nlohmann::json& document, const std::string& origin);
/// The text of a JSON document as this project writes it: two spaces, a newline at the end.
std::string json_text(const nlohmann::json& document);

/// GitHub's Markdown: pipe tables, charts as tables in folds, everything escaped.
std::string markdown_report(const Report& report);
/// One table by itself, and text that stays text inside a paragraph or a table cell.
std::string markdown_table(const Table& table);
std::string markdown_text(const std::string& text);

/// One file that opens offline: style, chart library and the JSON twin are inside, nothing is loaded. About 230 kB plus
/// the report.
std::string html_report(const Report& report);

}  // namespace wt
