#include "sim/measurements/step_errors.hpp"

#include <fmt/core.h>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "sim/measurements/csv.hpp"

namespace wt {

std::vector<StepError> read_step_errors(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file, {"origin", "family", "measured_over_predicted"}, OtherColumns::ignored);
  std::vector<StepError> out;
  for (const CsvRow& row : table.rows) {
    const double ratio = needed_number(table, row, table.at("measured_over_predicted"), 0);
    if (!(ratio > 0))
      throw_usage("{}: line {}: found a ratio of {}, needs one above 0", file.string(), row.line, ratio);
    out.push_back({row.cells[table.at("origin")], row.cells[table.at("family")], ratio});
  }
  return out;
}

void write_step_errors(const std::vector<StepError>& errors, const std::filesystem::path& file) {
  std::string text = "origin,family,measured_over_predicted\n";
  for (const StepError& e : errors) text += fmt::format("\"{}\",\"{}\",{:.4f}\n", e.origin, e.family, e.ratio);
  write_file_atomically(file, text);
}

}  // namespace wt
