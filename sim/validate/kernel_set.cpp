#include "sim/validate/kernel_set.hpp"

#include <fmt/core.h>

#include <set>

namespace wt {
namespace {

/// Elements that a kernel reads and writes for each element of its width.
double streams(const std::string& op) {
  return op == "swiglu" || op == "residual_add" ? 3 : 2;  // two inputs and one output; else one and one
}

std::string identity(const KernelSample& s) {
  return fmt::format("{}|{}|{}|{}|{}|{}", s.gpu.name, s.row->op, s.row->m, s.row->n, s.row->k, s.row->seconds);
}

}  // namespace

double KernelSample::share_of_peak() const {
  return is_product() ? product.flops() / (row->seconds * gpu.flops * product.relative_rate)
                      : bytes / (row->seconds * gpu.memory_Bps);
}

KernelSample kernel_sample(const KernelRow& row) {
  KernelSample s;
  s.row = &row;
  s.group = fmt::format("{} {} n{} k{}", row.gpu, row.op, row.n, row.k);
  const auto sheet = data_sheet(row.gpu);
  const auto element = element_bytes(row.dtype);
  if (!row.unusable.empty()) {
    s.reason = row.unusable;
  } else if (!sheet) {
    s.reason = fmt::format("no data sheet of '{}'", row.gpu);
  } else if (!element) {
    s.reason = fmt::format("size of the data type '{}' not known", row.dtype);
  } else if (row.op == "gemm" && !relative_rate(*sheet, row.dtype)) {
    s.reason = fmt::format("no tensor-core rate of {} for '{}' on the data sheet", sheet->name, row.dtype);
  }
  if (!s.reason.empty()) return s;
  s.gpu = *sheet;
  s.group = fmt::format("{} {} n{} k{}", sheet->name, row.op, row.n, row.k);
  if (row.op == "gemm")
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
