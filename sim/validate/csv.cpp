#include "sim/validate/csv.hpp"

#define CSV_IO_NO_THREAD  // these tables are small; a reading thread costs more than it saves
#include <libfccp/csv.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <utility>

#include "configs/spec/error.hpp"
#include "configs/spec/nearest.hpp"

namespace wt {
namespace {

constexpr std::size_t kLongestCell = 2000;
constexpr double kLargest = 1e15;  ///< more than any size, time or rate that is measured

std::string listed(const std::vector<std::string>& columns) {
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "" : ", ") + column;
  return text;
}

/// The library takes the columns as a parameter pack, so their number is fixed when it is compiled.
template <std::size_t... I>
void read_rows(CsvTable& table, std::index_sequence<I...>) {
  constexpr unsigned kColumns = sizeof...(I);
  io::CSVReader<kColumns, io::trim_chars<' ', '\t'>, io::double_quote_escape<',', '"'>> reader(table.file.string());
  reader.read_header(io::ignore_no_column, table.columns[I]...);
  std::array<std::string, kColumns> cells;
  const auto next = [&] {
    while (true) {
      try {
        return reader.read_row(cells[I]...);
      } catch (const io::error::too_few_columns& e) {
        table.broken.push_back({e.file_line, {}});
      } catch (const io::error::too_many_columns& e) {
        table.broken.push_back({e.file_line, {}});
      }
    }
  };
  while (next())
    table.rows.push_back({static_cast<std::int64_t>(reader.get_file_line()), {cells.begin(), cells.end()}});
}

template <std::size_t Columns = 1>
void read_any(CsvTable& table) {
  if constexpr (Columns > kMostColumns) {
    throw_error(Code::runtime, "read_csv: found {} columns, allowed at most {}; raise kMostColumns",
                table.columns.size(), kMostColumns);
  } else {
    if (table.columns.size() == Columns)
      read_rows(table, std::make_index_sequence<Columns>{});
    else
      read_any<Columns + 1>(table);
  }
}

}  // namespace

CsvTable read_csv(const std::filesystem::path& file, const std::vector<std::string>& columns) {
  CsvTable table{file, columns, {}, {}};
  const std::string name = file.string();
  if (!std::filesystem::is_regular_file(file)) throw_error(Code::usage, "{}: cannot be read; needs a CSV file", name);
  try {
    read_any(table);
  } catch (const io::error::header_missing&) {
    throw_error(Code::usage, "{}: found an empty file, needs a header with the columns {}", name, listed(columns));
  } catch (const io::error::extra_column_in_header& e) {
    throw_error(Code::usage, "{}: line 1: found the column '{}'{}; allowed are {}", name, e.column_name,
                did_you_mean(e.column_name, columns), listed(columns));
  } catch (const io::error::missing_column_in_header& e) {
    throw_error(Code::usage, "{}: line 1: column '{}' missing; needs {}", name, e.column_name, listed(columns));
  } catch (const io::error::duplicated_column_in_header& e) {
    throw_error(Code::usage, "{}: line 1: found the column '{}' twice; needs each once", name, e.column_name);
  } catch (const io::error::base& e) {
    throw_error(Code::usage, "{}: {}; needs comma-separated cells", name, e.what());
  }
  if (table.rows.empty() && table.broken.empty())
    throw_error(Code::usage, "{}: found no rows, needs a header and at least one row", name);
  for (const CsvRow& row : table.rows)
    for (const std::string& cell : row.cells)
      if (cell.size() > kLongestCell)
        throw_error(Code::usage, "{}: line {}: found a cell of {} characters, needs at most {}", name, row.line, cell.size(), kLongestCell);
  return table;
}

void refuse_broken(const CsvTable& table) {
  if (!table.broken.empty())
    throw_error(Code::usage, "{}: line {}: found too few or too many cells, needs {}; quote cells with commas",
                table.file.string(), table.broken.front().line, table.columns.size());
}

std::optional<double> number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest) {
  const std::string& cell = row.cells[column];
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failure != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value) || value < lowest ||
      value > kLargest)
    throw_error(Code::usage, "{}: line {}: column '{}': found '{}', needs a number from {} to {:g}", table.file.string(),
                row.line, table.columns[column], cell, lowest, kLargest);
  return value;
}

double needed_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest) {
  if (const auto value = number(table, row, column, lowest)) return *value;
  throw_error(Code::usage, "{}: line {}: column '{}': found nothing, needs a number >= {}", table.file.string(),
              row.line, table.columns[column], lowest);
}

}  // namespace wt
