// Tables of measurements as text cells, read with libfccp: every column by name, every cell with the line it stands on.
// Quoted cells may hold commas, not line breaks.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

struct CsvRow {
  std::int64_t line = 0;           ///< in the file, the header is 1
  std::vector<std::string> cells;  ///< in the order of the columns asked for
};

struct CsvTable {
  std::filesystem::path file;
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
  std::vector<CsvRow> broken;  ///< lines with too few or too many cells; without cells
};

/// Reads exactly these columns, in any order. Throws Error{usage} naming file and line: no such file, an empty one, a
/// header without one of the columns or with another one, a table without rows.
/// Throws Error{runtime} for more than kMostColumns columns.
CsvTable read_csv(const std::filesystem::path& file, const std::vector<std::string>& columns);
constexpr std::size_t kMostColumns = 11;

/// Throws Error{usage} where a line has too few or too many cells.
void refuse_broken(const CsvTable& table);

/// The cell as a number, nothing where it is empty. Throws Error{usage} naming file, line and column where it is no
/// finite number or below `lowest`.
std::optional<double> number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);
/// The same for a cell that must not be empty.
double needed_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest);

}  // namespace wt
