#include "sim/measurements/step_errors.hpp"

#include <fmt/core.h>

#include <array>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "sim/measurements/csv.hpp"

namespace wt {
namespace {

struct TextColumn {
  const char* name;
  std::string RunFeatures::*value;
};
constexpr std::array kTexts = {TextColumn{"family", &RunFeatures::family}, TextColumn{"gpu", &RunFeatures::gpu},
                               TextColumn{"stack", &RunFeatures::stack}, TextColumn{"format", &RunFeatures::format}};
struct AmountColumn {
  const char* name;
  double RunFeatures::*value;
};
constexpr std::array kAmountColumns = {
    AmountColumn{"gpus", &RunFeatures::gpus},         AmountColumn{"flops_per_token", &RunFeatures::flops_per_token},
    AmountColumn{"sequence", &RunFeatures::sequence}, AmountColumn{"microbatch", &RunFeatures::microbatch},
    AmountColumn{"expert", &RunFeatures::expert},     AmountColumn{"split", &RunFeatures::split}};

std::vector<std::string> columns() {
  std::vector<std::string> out = {"origin", "run", "measured_tokens_per_s_per_gpu", "predicted_tokens_per_s_per_gpu"};
  for (const TextColumn& column : kTexts) out.emplace_back(column.name);
  for (const AmountColumn& column : kAmountColumns) out.emplace_back(column.name);
  return out;
}

}  // namespace

std::vector<MeasuredRun> read_step_errors(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file, columns());
  if (!table.broken.empty()) throw_usage("{}: line {}: {}", file.string(), table.broken.front().line, kBrokenLine);
  std::vector<MeasuredRun> out;
  for (const CsvRow& row : table.rows) {
    const auto above_zero = [&](const char* column) {
      const double value = needed_number(table, row, table.at(column), 0);
      if (!(value > 0))
        throw_usage("{}: line {}: {}: found {}, needs more than 0", file.string(), row.line, column, value);
      return value;
    };
    MeasuredRun& run = out.emplace_back();
    run.origin = row.cells[table.at("origin")];
    run.name = row.cells[table.at("run")];
    run.measured = above_zero("measured_tokens_per_s_per_gpu");
    run.predicted = above_zero("predicted_tokens_per_s_per_gpu");
    for (const TextColumn& column : kTexts) run.features.*column.value = row.cells[table.at(column.name)];
    for (const AmountColumn& column : kAmountColumns) run.features.*column.value = above_zero(column.name);
  }
  return out;
}

void write_step_errors(const std::vector<MeasuredRun>& runs, const std::filesystem::path& file) {
  std::string text = joined(columns(), ",") + "\n";
  for (const MeasuredRun& run : runs) {
    text += fmt::format("\"{}\",\"{}\",{:.6g},{:.6g}", run.origin, run.name, run.measured, run.predicted);
    for (const TextColumn& column : kTexts) text += fmt::format(",\"{}\"", run.features.*column.value);
    for (const AmountColumn& column : kAmountColumns) text += fmt::format(",{:.6g}", run.features.*column.value);
    text += "\n";
  }
  write_file_atomically(file, text);
}

}  // namespace wt
