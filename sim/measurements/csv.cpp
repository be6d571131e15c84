#include "sim/measurements/csv.hpp"

#include <csv.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/parsed.hpp"

namespace wt {
namespace {

constexpr std::size_t kLongestCell = 2000;
constexpr double kLargest = 1e15;                            ///< larger than any measured size, time or rate
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it before UTF-8

std::string listed(const std::vector<std::string>& columns) { return fmt::format("{}", fmt::join(columns, ", ")); }

/// The cells of one line; none if it is blank. std::nullopt if a quote stays open or is misplaced. Each line gets a
/// parser of its own, so that an open quote does not swallow the lines after it.
std::optional<std::vector<std::string>> cells_of(const std::string& line) {
  csv_parser parser;
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI);
  std::vector<std::string> cells;
  const auto add = [](void* cell, std::size_t size, void* to) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(static_cast<const char*>(cell), size);
  };
  const bool read = csv_parse(&parser, line.data(), line.size(), add, nullptr, &cells) == line.size() &&
                    csv_fini(&parser, add, nullptr, &cells) == 0;
  csv_free(&parser);
  if (!read) return std::nullopt;
  return cells;
}

std::vector<std::string> header_of(std::istream& in, const std::string& name) {
  std::string line;
  std::getline(in, line);
  if (line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  const auto header = cells_of(line);
  if (!header) throw_usage("{}: line 1: found a quote out of place, needs comma-separated cells", name);
  if (header->empty()) throw_usage("{}: found an empty file, needs a header with the columns", name);
  return *header;
}

std::ifstream opened(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!std::filesystem::is_regular_file(file) || !in)
    throw_usage("{}: cannot be read; needs a CSV file", file.string());
  return in;
}

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// Index of each of the columns in the header. The first `needed` columns must be there.
std::vector<std::size_t> places(const std::vector<std::string>& header, const std::vector<std::string>& columns,
                                std::size_t needed, OtherColumns others, const std::string& name) {
  std::vector<std::size_t> out;
  for (const std::string& column : header) {
    const bool known = std::ranges::find(columns, column) != columns.end();
    if (!known && others == OtherColumns::refused)
      throw_usage("{}: line 1: found the column '{}'{}; allowed are {}", name, column, did_you_mean(column, columns),
                  listed(columns));
    if (known && std::ranges::count(header, column) > 1)
      throw_usage("{}: line 1: found the column '{}' twice; needs each once", name, column);
  }
  for (const std::string& column : columns) {
    const auto found = std::ranges::find(header, column);
    if (found == header.end() && out.size() < needed)
      throw_usage("{}: line 1: column '{}' missing{}; needs {}", name, column, did_you_mean(column, header),
                  listed({columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(needed)}));
    out.push_back(found == header.end() ? kNowhere : static_cast<std::size_t>(found - header.begin()));
  }
  return out;
}

}  // namespace

std::size_t CsvTable::at(const std::string& column) const {
  const auto found = std::ranges::find(columns, column);
  if (found == columns.end()) throw_runtime("CsvTable: found no column '{}', has {}", column, listed(columns));
  return static_cast<std::size_t>(found - columns.begin());
}

std::vector<std::string> read_csv_header(const std::filesystem::path& file) {
  std::ifstream in = opened(file);
  return header_of(in, file.string());
}

CsvTable read_csv(const std::filesystem::path& file, const std::vector<std::string>& columns, OtherColumns others,
                  const std::vector<std::string>& optional) {
  CsvTable table{file, columns, {}, {}};
  table.columns.insert(table.columns.end(), optional.begin(), optional.end());
  const std::string name = file.string();
  std::ifstream in = opened(file);
  const std::vector<std::string> header = header_of(in, name);
  const std::vector<std::size_t> from = places(header, table.columns, columns.size(), others, name);
  const auto too_long = [](const std::string& cell) { return cell.size() > kLongestCell; };
  std::string text;
  for (std::int64_t line = 2; std::getline(in, text); ++line) {
    auto cells = cells_of(text);
    if (cells && cells->empty()) continue;
    if (!cells || cells->size() != header.size() || std::any_of(cells->begin(), cells->end(), too_long)) {
      table.broken.push_back({line, {}});
      continue;
    }
    CsvRow row{line, {}};
    row.cells.reserve(from.size());
    for (const std::size_t place : from)
      row.cells.push_back(place == kNowhere ? std::string() : std::move((*cells)[place]));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty() && table.broken.empty())
    throw_usage("{}: found no rows, needs a header and at least one row", name);
  return table;
}

std::optional<double> number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest) {
  const std::string& cell = row.cells[column];
  if (cell.empty()) return std::nullopt;
  const auto value = parsed<double>(cell);
  if (!value || !std::isfinite(*value) || *value < lowest || *value > kLargest)
    throw_usage("{}: line {}: column '{}': found '{}', needs a number from {} to {:g}", table.file.string(), row.line,
                table.columns[column], cell, lowest, kLargest);
  return value;
}

std::optional<std::int64_t> whole_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest,
                                         double highest) {
  const auto value = number(table, row, column, lowest);
  if (value && (*value > highest || *value != std::floor(*value)))
    throw_usage("{}: line {}: column '{}': found '{}', needs a whole number from {} to {:g}", table.file.string(),
                row.line, table.columns[column], row.cells[column], lowest, highest);
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::int64_t needed_whole_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest) {
  needed_number(table, row, column, lowest);
  return *whole_number(table, row, column, lowest);
}

double needed_number(const CsvTable& table, const CsvRow& row, std::size_t column, double lowest) {
  if (const auto value = number(table, row, column, lowest)) return *value;
  throw_usage("{}: line {}: column '{}': found nothing, needs a number >= {}", table.file.string(), row.line,
              table.columns[column], lowest);
}

}  // namespace wt
