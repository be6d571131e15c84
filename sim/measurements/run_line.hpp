// A line of a table of training runs, its cells by column.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// The table and its row must outlive it. Members throw Error{usage} at cells that are not what the column holds.
class RunLine {
 public:
  RunLine(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}
  const std::string& text(const std::string& column) const { return row_.cells[table_.at(column)]; }
  bool has(const std::string& column, const std::string& part) const {
    return text(column).find(part) != std::string::npos;
  }
  double real(const std::string& column) const { return number(table_, row_, table_.at(column), 0).value_or(0); }
  /// A whole number; 0 says as little as an empty cell.
  std::optional<std::int64_t> count(const std::string& column, double highest = 1e6) const {
    const auto value = whole_number(table_, row_, table_.at(column), 0, highest);
    return value == 0 ? std::nullopt : value;
  }
  /// `allowed`: the empty cell first.
  std::string one_of(const std::string& column, const std::vector<std::string>& allowed) const {
    const std::string& found = text(column);
    if (std::find(allowed.begin(), allowed.end(), found) == allowed.end())
      throw_error(Code::usage, "{}: found '{}', allowed {}, or nothing", column, found,
                  fmt::join(allowed.begin() + 1, allowed.end(), ", "));
    return found;
  }
  std::int64_t needed(const std::string& column, double highest = 1e6) const {
    if (const auto value = count(column, highest)) return *value;
    throw_error(Code::usage, "{} not said", column);
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

/// The model's shape: a preset's with the line's layers, or what the columns say of it and, by what is usual, what they
/// leave out; that is named in `assumed`. Throws Error{usage}: a shape that is not said, or not modelled.
void fill_model(const RunLine& line, RunRow& row);

}  // namespace wt
