#include "sim/cost/kernels/kernel_set.hpp"

#include <fmt/core.h>

#include <set>

#include "sim/measurements/kernel_rates.hpp"
#include "sim/measurements/row_ops.hpp"

namespace wt {
namespace {

/// Elements that a kernel reads and writes for each element of its width: where nothing is known, one and one.
double streams(const std::string& op) { return row_op(op).value_or(RowOp{}).streams; }

std::string group_of(const KernelRow& row, const std::string& gpu) {
  if (row.op.starts_with("attention_")) return fmt::format("{} {} {}", gpu, row.op, row.source);
  if (row.op == "gemm" || row.op == "grouped_gemm" || row.op.starts_with("moe_") || row.implementation.empty())
    return fmt::format("{} {} n{} k{}", gpu, row.op, row.n, row.k);
  return fmt::format("{} {} n{} {}", gpu, row.op, row.n, row.implementation);
}

std::string identity(const KernelSample& s) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", s.gpu.name, s.row->op, s.row->implementation, s.row->groups, s.row->m,
                     s.row->n, s.row->k, s.row->seconds);
}

}  // namespace

double KernelSample::share_of_peak() const {
  return is_product()    ? product.flops() / (row->seconds * gpu.flops * product.relative_rate)
         : is_composed() ? published_flops(*row) / (row->seconds * gpu.flops * product.relative_rate)
                         : bytes / (row->seconds * gpu.memory_Bps);
}

KernelSample kernel_sample(const KernelRow& row) {
  KernelSample s;
  s.row = &row;
  s.group = group_of(row, row.gpu);
  const auto sheet = data_sheet(row.gpu);
  const auto element = element_bytes(row.dtype);
  if (!row.unusable.empty()) {
    s.reason = row.unusable;
  } else if (!sheet) {
    s.reason = fmt::format("no data sheet of '{}'", row.gpu);
  } else if (!element) {
    s.reason = fmt::format("size of the data type '{}' not known", row.dtype);
  } else if ((s.is_product() || s.is_composed()) && !relative_rate(*sheet, row.dtype)) {
    s.reason = fmt::format("no tensor-core rate of {} for '{}' on the data sheet", sheet->name, row.dtype);
  }
  if (!s.reason.empty()) return s;
  s.gpu = *sheet;
  s.group = group_of(row, sheet->name);
  if (s.is_product() || s.is_composed())
    s.product = {row.m, row.n, row.k, *relative_rate(*sheet, row.dtype), *element};
  else
    s.bytes = streams(row.op) * row.m * row.n * *element;
  return s;
}

std::vector<KernelSample> training_set(const std::vector<KernelSample>& rows, const std::vector<KernelRow>& reference) {
  std::vector<KernelSample> out;
  std::set<std::string> seen;
  const auto add = [&](KernelSample s) {
    if (s.reason.empty() && seen.insert(identity(s)).second) out.push_back(std::move(s));
  };
  for (const KernelSample& s : rows) add(s);
  for (const KernelRow& row : reference) add(kernel_sample(row));
  return out;
}

}  // namespace wt
