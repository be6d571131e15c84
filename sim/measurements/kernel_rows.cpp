#include "sim/measurements/kernel_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/files/stack.hpp"
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

constexpr double kSameRate = 0.02;  ///< by which a printed time and a printed rate may differ

std::string place(const CsvTable& table, const CsvRow& cells) {
  return fmt::format("{}: line {}", table.file.string(), cells.line);
}

/// A cell with one of these words. Throws Error{usage} with file, line and column.
std::string word_of(const CsvTable& table, const CsvRow& cells, const char* column, const auto& allowed) {
  std::string found = cells.cells[table.at(column)];
  if (std::ranges::find(allowed, found) == std::end(allowed))
    throw_usage("{}: column '{}': found '{}', allowed {}", place(table, cells), column, found, joined(allowed, ", "));
  return found;
}

void fill_groups(const CsvTable& table, const CsvRow& cells, KernelRow& row) {
  static constexpr std::array kOps = {"forward", "input_gradient", "weight_gradient"};
  static constexpr std::array kUses = {"apart"};
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  const auto size = [&](const char* column) {
    return static_cast<double>(needed_whole_number(table, cells, table.at(column), 1));
  };
  row.gpu = text("gpu");
  row.source = text("source");
  row.dtype = text("precision");
  row.op = "grouped_gemm";
  row.implementation = word_of(table, cells, "library", kGroupedLibraries);
  row.apart = !text("use").empty() && word_of(table, cells, "use", kUses) == "apart";
  const std::string op = word_of(table, cells, "op", kOps);
  row.weight_gradient = op == "weight_gradient";
  row.groups = size("groups");
  row.m = size("rows_per_group");
  row.n = size("n");
  row.k = size("k");
  if (op == "input_gradient") std::swap(row.n, row.k);
  const auto time_us = number(table, cells, table.at("time_us"), 0),
             tflops = number(table, cells, table.at("tflops"), 0);
  const double by_rate_s = tflops ? published_flops(row) / (*tflops * 1e12) : 0;
  row.seconds = time_us ? *time_us * 1e-6 : by_rate_s;
  if (!(row.seconds > 0) || !std::isfinite(row.seconds))
    throw_usage("{}: columns 'time_us' and 'tflops': found neither above 0, needs one", place(table, cells));
  if (time_us && tflops && std::abs(by_rate_s / row.seconds - 1) > kSameRate)
    throw_usage("{}: columns 'time_us' and 'tflops': found {} us and {} TFLOP/s, which is {:.0f} us; needs the same",
                place(table, cells), *time_us, *tflops, by_rate_s * 1e6);
}

/// The library behind a kernel's name in our profiles; empty for other kernels.
std::string own_library(const std::string& kernel) {
  return kernel == "grouped_gemm" || kernel == "grouped_gemm_own" ? "windtunnel"
         : kernel == "grouped_gemm_library"                       ? "torch"
         : kernel == "grouped_gemm_loop"                          ? "te"
                                                                  : "";
}

}  // namespace

std::vector<KernelRow> read_kernel_rows(const std::filesystem::path& file) {
  const std::vector<std::string> header = read_csv_header(file);
  const auto has = [&](const char* column) { return std::ranges::find(header, column) != header.end(); };
  auto rows =
      has("rows_per_group") ? rows_of<KernelRow>(read_csv(file,
                                                          {"source", "gpu", "library", "op", "precision", "groups",
                                                           "rows_per_group", "n", "k", "time_us", "tflops"},
                                                          OtherColumns::ignored, {"use"}),
                                                 fill_groups)
      : has("kernel") ? rows_of<KernelRow>(read_csv(file, {"kernel", "gpu", "shape", "precision", "value", "unit"},
                                                    OtherColumns::ignored, {"source"}),
                                           fill_throughput)
                      : rows_of<KernelRow>(read_csv(file, {"gpu", "op", "m", "n", "dtype", "median_us"},
                                                    OtherColumns::ignored, {"k", "std_us", "source"}),
                                           fill_time);
  for (KernelRow& row : rows) row.origin = Origins::published().of(row.source);
  return rows;
}

std::vector<KernelRow> grouped_rows(const Profile& profile, const std::string& source) {
  std::vector<KernelRow> rows;
  const auto device = profile.fingerprint.find("device");
  for (const Measurement& each : profile.measurements) {
    const std::string library = own_library(each.kernel);
    if (library.empty() || each.pass != "forward" || each.dtype != "bf16") continue;
    KernelRow& row = rows.emplace_back();
    const auto size = [&](const char* name) { return static_cast<double>(each.shape.at(name)); };
    row.source = source;
    row.gpu = device == profile.fingerprint.end() ? "" : device->second;
    row.origin = Origins::published().of(source);
    row.dtype = each.dtype;
    row.op = "grouped_gemm";
    row.implementation = library;
    row.groups = size("groups");
    row.m = size("rows") / row.groups;
    row.n = size("n");
    row.k = size("k");
    row.seconds = each.median();
  }
  return rows;
}

}  // namespace wt
