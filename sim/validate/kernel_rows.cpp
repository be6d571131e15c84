#include "sim/validate/kernel_rows.hpp"

#include "configs/spec/error.hpp"
#include "sim/validate/csv.hpp"

namespace wt {

std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file) {
  enum { gpu, op, m, n, k, dtype, median_us, std_us, source };
  const CsvTable table = read_csv(file, {"gpu", "op", "m", "n", "k", "dtype", "median_us", "std_us", "source"});
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
      throw_error(Code::usage, "{}: line {}: column 'median_us': found 0, needs a time above 0", file.string(), row.line);
    if (row.op.empty())
      throw_error(Code::usage, "{}: line {}: column 'op': found nothing, needs gemm or the name of a memory-bound kernel",
                  file.string(), row.line);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace wt
