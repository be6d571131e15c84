// Tables of measurements as text cells, read with libcsv: every column by name, every cell with the line it stands on.
// Quoted cells may hold commas, not line breaks.
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
  std::int64_t line = 0;           ///< in the file, the header is 1
  std::vector<std::string> cells;  ///< in the order of the columns asked for
};

struct CsvTable {
  std::filesystem::path file;
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
  std::vector<CsvRow> broken;  ///< lines with too few or too many cells, one too long, or an open quote; without cells

  /// Place of a column. Throws Error{runtime} where it was not asked for.
  std::size_t at(const std::string& column) const;
};

/// Reads these columns, in any order; those that a file need not have follow the others and are empty where it has not.
/// Throws Error{usage} naming file and line: no such file, an empty one, a header without one of the columns, with one
/// of them twice or (unless allowed) with another one, a table without rows.
enum class OtherColumns { refused, ignored };
CsvTable read_csv(const std::filesystem::path& file, const std::vector<std::string>& columns,
                  OtherColumns others = OtherColumns::refused, const std::vector<std::string>& optional = {});

/// The names of a table's columns, by which schemas are told apart. Throws Error{usage} as read_csv does.
std::vector<std::string> read_csv_header(const std::filesystem::path& file);

/// What is wrong with a broken line.
constexpr const char* kBrokenLine =
    "too few or too many cells, one of more than 2000 characters, or a quote out of place; quote cells with commas";

/// A Row (with `line` and `unusable`) of every line, in order. Tables are written by hand: a line that is broken or of
/// which `fill` (table, cells, row) throws Error{usage} says why in `unusable`, and does not take the others' value
/// away.
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

/// The cell as a number, nothing where it is empty. Throws Error{usage} naming file, line and column where it is no
/// finite number or below `lowest`.
std::optional<double> number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);
/// The same of a number of things or a size: whole, and at most `highest`, far from where products of them overflow.
constexpr double kMostThings = 1e7;
std::optional<std::int64_t> whole_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest,
                                         double highest = kMostThings);
/// The same for cells that must not be empty.
std::int64_t needed_whole_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);
double needed_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);

}  // namespace wt
