#include "sim/cost/kernels/item_times.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/kernels/attention.hpp"

namespace wt {
namespace {

/// As tables of kernel times name it.
std::string op_of(Kernel kernel) { return kernel == Kernel::add ? "residual_add" : to_string(kernel); }

}  // namespace

double ItemTimes::product_s(double m, double n, double k, double relative_rate, const DataSheet& gpu) const {
  const auto key = std::make_tuple(gpu.name, m, n, k, relative_rate);
  if (const auto found = products_.find(key); found != products_.end()) return found->second;
  KernelTask task;
  task.shape = {.op = "gemm", .m = m, .n = n, .k = k};
  task.gpu = gpu;
  task.relative_rate = relative_rate;
  task.element_bytes = relative_rate > 1 ? 1 : relative_rate < 1 ? 4 : 2;
  return products_[key] = *kernels_->time(task).seconds;
}

double ItemTimes::products_s(const WorkItem& item, const BoundRows& rows, double relative_rate,
                             const DataSheet& gpu) const {
  const double n = static_cast<double>(item.dims[0]), k = static_cast<double>(item.dims[1]);
  const double groups = item.kernel == Kernel::grouped_gemm ? static_cast<double>(item.dims[2]) : 1;
  const double m = std::max(1.0, std::round(item.rows.at(rows.sum) / groups));
  if (item.precision == Precision::fp32) relative_rate = 0.5;  // TF32 products of fp32 tensors
  const auto one_s = [&](double group) {
    return item.pass == Pass::forward
               ? product_s(group, n, k, relative_rate, gpu)
               : product_s(group, k, n, relative_rate, gpu) + product_s(n, k, group, relative_rate, gpu);
  };
  const double equal_s = groups * one_s(m);
  if (!rows.spread_over(item)) return equal_s;
  double each_s = 0;
  for (const double group : rows.by_expert)
    if (std::round(group) >= 1) each_s += one_s(std::round(group));
  return std::max(equal_s, each_s);
}

ItemTime ItemTimes::item(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice,
                         const DataSheet& gpu) const {
  if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm)
    return {.products_s = products_s(item, rows, choice.relative_rate, gpu)};
  if (item.kernel == Kernel::attention && choice.attention == AttentionKernels::unfused) {
    const UnfusedAttention kept = unfused_attention(item, gpu);
    return {.products_s = kept.products_s, .memory_s = kept.memory_s};
  }
  if (item.kernel == Kernel::attention) {
    const auto [found, is_new] = attention_factors_.try_emplace({gpu.name, choice.attention, item.pass}, 1);
    if (is_new)
      found->second =
          kernels_->library_factor(item.pass == Pass::forward ? "attention_forward" : "attention_backward",
                                   choice.attention == AttentionKernels::flash2 ? "FlashAttention-2" : "cuDNN", gpu);
    return {.attention_s = attention_time_s(item, gpu) * found->second};
  }
  const double bytes = item.bytes(rows.sum), count = item.rows.at(rows.sum);
  if (!(bytes > 0)) return {};
  const double width = static_cast<double>(item.dims[0]);  // 0 of flat buffers: no row is one block's
  return {.memory_s = kernels_->by_rows_s({count, width, bytes}, op_of(item.kernel), gpu)};
}

PriceBasis ItemTimes::explain(const WorkItem& item, const DataSheet& gpu) const {
  const std::string pass = to_string(item.pass);
  const std::string op = item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm ? "gemm"
                         : item.kernel == Kernel::attention                                 ? "attention_" + pass
                                                                                            : "";
  const std::int64_t points = kernels_->points(op, gpu);
  return {to_string(item.kernel) + "/" + pass, points,
          points > 0 ? "published times on processors as those of " + gpu.name
                     : "published times of other GPUs, scaled by the data sheet"};
}

MeasuredKinds ItemTimes::measured_on(const DataSheet& gpu) const {
  return {.products = kernels_->points("gemm", gpu) > 0,
          .attention = kernels_->points("attention_forward", gpu) > 0,
          .memory = kernels_->points("", gpu) > 0};
}

}  // namespace wt
