// A report on a terminal: aligned tables, and optional colour.
#pragma once
#include <string>

#include "reports/model/report.hpp"

namespace wt {

struct TextOptions {
  bool color = false;
  std::size_t width = 100;             ///< paragraphs wrap here; tables may be wider
  std::size_t table_width = 0;         ///< tables are folded to it (column_blocks.hpp); 0: any width
  std::size_t max_points = 24;         ///< points listed of a chart over x
  std::size_t max_timeline_rows = 20;  ///< spans listed of a timeline; the rest are counted
};

/// Where the descriptor is a terminal, coloured, and no table wider than it.
TextOptions terminal_options(int descriptor);

/// Control characters in names are shown as '?', so that no name can control the terminal. Columns align by code point.
std::string text_report(const Report& report, const TextOptions& options = {});
/// A single table, for commands that print nothing else.
std::string text_table(const Table& table, const TextOptions& options = {});

}  // namespace wt
