#include "sim/fit/kernel_points.hpp"

#include <fmt/core.h>

#include <set>

#include "sim/measurements/kernel_rates.hpp"
#include "sim/measurements/row_ops.hpp"

namespace wt {
namespace {

std::string group_of(const KernelTask& task, const std::string& gpu, const std::string& origin) {
  const KernelShape& s = task.shape;
  if (task.is_attention()) return fmt::format("{} {}", s.op, origin);
  if (task.is_grouped()) return fmt::format("{} n{} k{}", s.op, s.n, s.k);
  return fmt::format("{} {} n{} k{}", gpu, s.op, s.n, s.k);
}

std::string identity(const KernelPoint& p) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", p.gpu.name, p.shape.op, p.shape.implementation, p.shape.groups,
                     p.shape.m, p.shape.n, p.shape.k, p.seconds);
}

}  // namespace

double KernelPoint::least_s() const {
  if (is_product()) return product().flops() / (gpu.flops * relative_rate);
  return is_bound_by_memory() ? bytes / gpu.memory_Bps : published_flops(shape) / (gpu.flops * relative_rate);
}

KernelPoint kernel_point(const KernelRow& row) {
  KernelPoint p;
  p.shape = row;
  p.seconds = row.seconds;
  p.origin = row.origin;
  p.group = group_of(p, row.gpu, row.origin);
  const auto sheet = data_sheet(row.gpu);
  const auto element = element_bytes(row.dtype);
  const bool products = !p.is_bound_by_memory();
  if (!row.unusable.empty()) {
    p.reason = row.unusable;
  } else if (p.shape.op.starts_with("moe_")) {
    p.reason = "a layer of experts as one kernel: plans predict its products and what passes through memory apart";
  } else if (p.is_bound_by_memory() && !p.shape.implementation.empty()) {
    p.reason =
        fmt::format("a kernel of {}: plans tell no libraries of memory-bound kernels apart", p.shape.implementation);
  } else if (!sheet) {
    p.reason = fmt::format("no data sheet of '{}'", row.gpu);
  } else if (!element) {
    p.reason = fmt::format("size of the data type '{}' not known", row.dtype);
  } else if (products && !relative_rate(*sheet, row.dtype)) {
    p.reason = fmt::format("no rate of {} for products in '{}' on the data sheet", sheet->name, row.dtype);
  }
  if (!p.reason.empty()) return p;
  p.gpu = *sheet;
  p.group = group_of(p, sheet->name, row.origin);
  p.element_bytes = *element;
  // For an unknown kernel, each element of its width is read once and written once.
  if (p.is_bound_by_memory()) p.bytes = row_op(p.shape.op).value_or(RowOp{}).streams * p.shape.m * p.shape.n * *element;
  if (products) p.relative_rate = *relative_rate(*sheet, row.dtype);
  return p;
}

std::vector<KernelPoint> usable_points(const std::vector<KernelRow>& rows) {
  std::vector<KernelPoint> out;
  std::set<std::string> seen;
  for (const KernelRow& row : rows)
    if (KernelPoint p = kernel_point(row); p.reason.empty() && !row.apart && seen.insert(identity(p)).second)
      out.push_back(std::move(p));
  return out;
}

}  // namespace wt
