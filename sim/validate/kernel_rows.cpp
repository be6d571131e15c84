#include "sim/validate/kernel_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <regex>
#include <string>

#include "configs/spec/error.hpp"
#include "sim/validate/csv.hpp"

namespace wt {
namespace {

/// "M=64 N=2112 K=7168" or "8192x8192x8192".
bool read_shape(const std::string& text, KernelRow& row) {
  static const std::regex named(R"(M=(\d{1,9}) N=(\d{1,9}) K=(\d{1,9}))"), bare(R"((\d{1,9})x(\d{1,9})x(\d{1,9}))");
  std::smatch found;
  if (!std::regex_match(text, found, named) && !std::regex_match(text, found, bare)) return false;
  row.m = std::stod(found[1]);
  row.n = std::stod(found[2]);
  row.k = std::stod(found[3]);
  return row.m >= 1 && row.n >= 1 && row.k >= 1;
}

std::vector<KernelRow> read_throughputs(const std::filesystem::path& file) {
  enum { source, kernel, gpu, shape, precision, value, unit, how };
  const CsvTable table =
      read_csv(file, {"source", "kernel", "gpu", "shape", "precision", "value", "unit", "read_or_recalled"});
  std::vector<KernelRow> rows;
  rows.reserve(table.rows.size());
  for (const CsvRow& cells : table.rows) {
    KernelRow row;
    row.line = cells.line;
    row.gpu = cells.cells[gpu];
    row.dtype = cells.cells[precision] == "fp16/bf16" ? "bf16" : cells.cells[precision];
    row.source = cells.cells[source];
    row.op = cells.cells[kernel];
    if (!row.op.starts_with("dense GEMM") || cells.cells[unit] != "TFLOP/s") {
      row.unusable = "not the rate of a dense GEMM";
    } else if (!read_shape(cells.cells[shape], row)) {
      row.unusable = "shape does not say m, n and k";
    } else {
      const double flops = needed_number(table, cells, value, 0) * 1e12;
      if (!(flops > 0))
        throw_error(Code::usage, "{}: line {}: column 'value': found 0, needs a rate above 0", file.string(), row.line);
      row.op = "gemm";
      row.seconds = 2 * row.m * row.n * row.k / flops;
    }
    rows.push_back(std::move(row));
  }
  // Published by hand: one line that is not as it should be does not take the others' value away.
  for (const CsvRow& broken : table.broken) {
    KernelRow row;
    row.line = broken.line;
    row.op = "line " + std::to_string(broken.line);
    row.unusable = kBrokenLine;
    rows.push_back(std::move(row));
  }
  return rows;
}

bool has_throughputs(const std::filesystem::path& file) {
  const std::vector<std::string> header = read_csv_header(file);
  return std::find(header.begin(), header.end(), "kernel") != header.end();
}

}  // namespace

std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file) {
  if (has_throughputs(file)) return read_throughputs(file);
  enum { gpu, op, m, n, k, dtype, median_us, std_us, source };
  const CsvTable table = read_csv(file, {"gpu", "op", "m", "n", "k", "dtype", "median_us", "std_us", "source"});
  refuse_broken(table);
  std::vector<KernelRow> rows;
  rows.reserve(table.rows.size());
  for (const CsvRow& cells : table.rows) {
    KernelRow row;
    row.line = cells.line;
    row.gpu = cells.cells[gpu];
    row.op = cells.cells[op];
    row.dtype = cells.cells[dtype];
    row.source = cells.cells[source];
    row.m = needed_number(table, cells, m, 1);
    row.n = needed_number(table, cells, n, 1);
    row.k = row.op == "gemm" ? needed_number(table, cells, k, 1) : number(table, cells, k, 0).value_or(0);
    number(table, cells, std_us, 0);
    row.seconds = needed_number(table, cells, median_us, 0) * 1e-6;
    if (!(row.seconds > 0))
      throw_error(Code::usage, "{}: line {}: column 'median_us': found 0, needs a time above 0", file.string(),
                  row.line);
    if (row.op.empty())
      throw_error(Code::usage,
                  "{}: line {}: column 'op': found nothing, needs gemm or the name of a memory-bound kernel",
                  file.string(), row.line);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace wt
