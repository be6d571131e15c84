// The columns of a table on a terminal that is narrower than the table: texts wrap in their columns, and columns that
// have no room stand below in a block of their own, next to the first column once more.
#pragma once
#include <cstddef>
#include <vector>

#include "reports/model/report.hpp"

namespace wt {

/// Blanks before each column.
constexpr std::size_t kColumnGap = 2;
/// A narrower terminal gets tables of this width.
constexpr std::size_t kLeastTableWidth = 40;

struct ColumnBlock {
  std::vector<std::size_t> columns = {};  ///< indices into Table::columns
  std::vector<std::size_t> widths = {};   ///< of each, without its gap
};

/// All columns as wide as their longest text, in one block.
ColumnBlock whole_columns(const Table& table, std::size_t shown_rows);
/// Blocks of at most `width`, or kLeastTableWidth if that is more. Every column is in a block. Numbers wrap only where
/// one is longer than a third of the width.
std::vector<ColumnBlock> fitted_columns(const Table& table, std::size_t shown_rows, std::size_t width);

/// A cell and a heading as text has them.
std::string shown_text(const Cell& cell);
std::string shown_text(const Column& column);

}  // namespace wt
