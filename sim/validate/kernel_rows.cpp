#include "sim/validate/kernel_rows.hpp"

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
  const auto [least, most] = std::minmax({row.m, row.n, row.k});
  return least >= 1 && most <= kMostThings;
}

void fill_throughput(const CsvTable& table, const CsvRow& cells, KernelRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  row.gpu = text("gpu");
  row.dtype = text("precision") == "fp16/bf16" ? "bf16" : text("precision");
  row.source = text("source");
  row.op = text("kernel");
  if (!row.op.starts_with("dense GEMM") || text("unit") != "TFLOP/s") {
    row.unusable = "not the rate of a dense GEMM";
  } else if (!read_shape(text("shape"), row)) {
    row.unusable = "shape does not say m, n and k of at most 1e7";
  } else {
    row.op = "gemm";
    const double flops = needed_number(table, cells, table.at("value"), 0) * 1e12;
    if (!(flops > 0)) throw_error(Code::usage, "column 'value': found 0, needs a rate above 0");
    row.seconds = 2 * row.m * row.n * row.k / flops;
  }
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
  if (!(row.seconds > 0)) throw_error(Code::usage, "column 'median_us': found 0, needs a time above 0");
  if (row.op.empty())
    throw_error(Code::usage, "column 'op': found nothing, needs gemm or the name of a memory-bound kernel");
}

bool has_throughputs(const std::filesystem::path& file) {
  const std::vector<std::string> header = read_csv_header(file);
  return std::find(header.begin(), header.end(), "kernel") != header.end();
}

}  // namespace

std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file) {
  if (has_throughputs(file))
    return rows_of<KernelRow>(read_csv(file, {"kernel", "gpu", "shape", "precision", "value", "unit"},
                                       OtherColumns::ignored, {"source"}),
                              fill_throughput);
  return rows_of<KernelRow>(read_csv(file, {"gpu", "op", "m", "n", "dtype", "median_us"}, OtherColumns::ignored,
                                     {"k", "std_us", "source"}),
                            fill_time);
}

}  // namespace wt
