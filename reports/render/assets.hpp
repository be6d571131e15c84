// Texts that are part of every HTML report, embedded at build time by cmake/EmbedText.cmake.
#pragma once
#include <string_view>

namespace wt::assets {

extern const std::string_view chart_js;       ///< Chart.js, minified (MIT, see NOTICE)
extern const std::string_view report_html;    ///< reports/render/report.mustache: the page
extern const std::string_view chart_text_js;  ///< reports/render/chart_text.js: texts of charts
extern const std::string_view explore_js;     ///< reports/render/explore.js: controls above a table
extern const std::string_view report_js;      ///< reports/render/report.js: draws the JSON twin with Chart.js
extern const std::string_view report_css;     ///< reports/render/report.css

}  // namespace wt::assets
