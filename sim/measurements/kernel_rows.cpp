#include "sim/measurements/kernel_rows.hpp"

#include <algorithm>
#include <string>

#include "configs/base/error.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/kernel_rates.hpp"
#include "sim/measurements/origins.hpp"
#include "sim/measurements/row_ops.hpp"

namespace wt {
namespace {

void fill_throughput(const CsvTable& table, const CsvRow& cells, KernelRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  row.gpu = text("gpu");
  KernelRate rate{text("source"), text("kernel"), text("shape"), text("precision"), text("unit"), 0};
  // A value that is no number ("33-50", "0.95/0.90") is an error only if the rest of the row is usable.
  const auto value = [&] { return needed_number(table, cells, table.at("value"), 0); };
  rate.value = 1;
  read_rate(rate, row);
  if (!row.unusable.empty()) return;
  rate.value = value();
  read_rate(rate, row);
}

void fill_time(const CsvTable& table, const CsvRow& cells, KernelRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  const auto size = [&](const char* column) {
    return static_cast<double>(needed_whole_number(table, cells, table.at(column), 1));
  };
  row.gpu = text("gpu");
  row.op = text("op");
  row.dtype = text("dtype");
  row.source = text("source");
  row.m = size("m");
  row.n = size("n");
  row.k = row.op == "gemm" ? size("k") : static_cast<double>(whole_number(table, cells, table.at("k"), 0).value_or(0));
  row.seconds = needed_number(table, cells, table.at("median_us"), 0) * 1e-6;
  if (!(row.seconds > 0)) throw_usage("column 'median_us': found 0, needs a time above 0");
  if (row.op.empty()) throw_usage("column 'op': found nothing, needs gemm or the name of a memory-bound kernel");
  if (row.op == "gemm") return;
  if (const auto known = row_op(row.op))
    row.op = known->name;
  else if (row.k > 0 || not_row_by_row(row.op))
    row.unusable = "no model of '" + row.op + "': neither gemm nor known to be bound by memory over m rows of width n";
}

bool has_throughputs(const std::filesystem::path& file) {
  const std::vector<std::string> header = read_csv_header(file);
  return std::ranges::find(header, "kernel") != header.end();
}

}  // namespace

std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file) {
  auto rows = has_throughputs(file)
                  ? rows_of<KernelRow>(read_csv(file, {"kernel", "gpu", "shape", "precision", "value", "unit"},
                                                OtherColumns::ignored, {"source"}),
                                       fill_throughput)
                  : rows_of<KernelRow>(read_csv(file, {"gpu", "op", "m", "n", "dtype", "median_us"},
                                                OtherColumns::ignored, {"k", "std_us", "source"}),
                                       fill_time);
  for (KernelRow& row : rows) row.origin = Origins::published().of(row.source);
  return rows;
}

}  // namespace wt
