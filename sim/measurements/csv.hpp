// Tables of measurements as text cells, read with libcsv: columns by name, each row with its line number. Quoted cells
// may hold commas, but no line breaks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/base/error.hpp"

namespace wt {

struct CsvRow {
  std::int64_t line = 0;           ///< in the file; the header is line 1
  std::vector<std::string> cells;  ///< in the order of the requested columns
};

struct CsvTable {
  std::filesystem::path file;
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
  std::vector<CsvRow> broken;  ///< lines with too few or too many cells, a cell too long, or an open quote; without
                               ///< cells

  /// Index of a column. Throws Error{runtime} if the column was not requested.
  std::size_t at(const std::string& column) const;
};

/// Reads the named columns, which the file may have in any order. Cells of `optional` columns follow the others, and
/// are empty if the file lacks the column. Throws Error{usage} naming file and line: no file, an empty file, a header
/// that lacks a column, has one twice or (unless ignored) has another one, a table without rows.
enum class OtherColumns { refused, ignored };
CsvTable read_csv(const std::filesystem::path& file, const std::vector<std::string>& columns,
                  OtherColumns others = OtherColumns::refused, const std::vector<std::string>& optional = {});

/// The names of a table's columns; readers tell schemas apart by them. Throws Error{usage} as read_csv does.
std::vector<std::string> read_csv_header(const std::filesystem::path& file);

/// What is wrong with a broken line.
constexpr const char* kBrokenLine =
    "too few or too many cells, one of more than 2000 characters, or a quote out of place; quote cells with commas";

/// A Row (with `line` and `unusable`) for every line, in order. Tables are written by hand, so one bad line must not
/// stop the others: a line that is broken, or for which `fill` (table, cells, row) throws Error{usage}, gets the reason
/// in `unusable`.
template <typename Row, typename Fill>
std::vector<Row> rows_of(const CsvTable& table, Fill fill) {
  std::vector<Row> rows;
  rows.reserve(table.rows.size() + table.broken.size());
  for (const CsvRow& cells : table.rows) {
    Row& row = rows.emplace_back();
    row.line = cells.line;
    try {
      fill(table, cells, row);
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      row.unusable = e.what();
    }
  }
  for (const CsvRow& broken : table.broken) {
    Row& row = rows.emplace_back();
    row.line = broken.line;
    row.unusable = kBrokenLine;
  }
  std::ranges::sort(rows, [](const Row& a, const Row& b) { return a.line < b.line; });
  return rows;
}

/// The cell as a number; nothing if it is empty. Throws Error{usage} naming file, line and column if it is not a finite
/// number or below `lowest`.
std::optional<double> number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);
/// The same for a count or a size: a whole number of at most `highest`, so that products of such numbers cannot
/// overflow.
constexpr double kMostThings = 1e7;
std::optional<std::int64_t> whole_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest,
                                         double highest = kMostThings);
/// The same for cells that must not be empty.
std::int64_t needed_whole_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);
double needed_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);

}  // namespace wt
