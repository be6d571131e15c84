#include "sim/cost/kernels/item_times.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "sim/cost/kernels/attention_times.hpp"

namespace wt {
namespace {

/// The kernel's name in tables of kernel times.
std::string op_of(Kernel kernel) { return kernel == Kernel::add ? "residual_add" : to_string(kernel); }

}  // namespace

ProductFormat product_format(NumberFormat format, const DataSheet& gpu) {
  const auto rate = relative_rate(gpu, to_string(format));
  if (!rate) throw_usage("no {} products on {}", to_string(format), gpu.name);
  const double bytes = bytes_of(format);
  return {*rate, bytes, bytes >= 2 ? 0 : bytes >= 1 ? 1 : 2};
}

namespace {

/// Format of one class of products. bf16 means the run's compute type, so that a GPU without bf16 is no error here:
/// runs in fp32 never ask for such a product.
ProductFormat class_format(NumberFormat format, const DataSheet& gpu) {
  if (format == NumberFormat::bf16 && !relative_rate(gpu, "bf16")) return {.relative_rate = 0};
  return product_format(format, gpu);
}

}  // namespace

KernelChoice::KernelChoice(const Precisions& precisions, AttentionKernels kernels, std::string library,
                           const DataSheet& gpu)
    : forward(class_format(precisions.forward, gpu)),
      input_gradients(class_format(precisions.input_gradients, gpu)),
      weight_gradients(class_format(precisions.weight_gradients, gpu)),
      fp32(product_format(relative_rate(gpu, "tf32") ? precisions.fp32_products : NumberFormat::fp32, gpu)),
      attention(kernels),
      attention_rate(
          precisions.attention == NumberFormat::bf16 ? 1 : product_format(precisions.attention, gpu).relative_rate),
      grouped(std::move(library)) {}

KernelChoice KernelChoice::in_16_bits() const {
  KernelChoice out = *this;
  out.forward = out.input_gradients = out.weight_gradients = {};
  return out;
}

bool KernelChoice::narrow(Pass pass) const {
  return (pass == Pass::forward ? forward.halvings : std::max(input_gradients.halvings, weight_gradients.halvings)) > 0;
}

double ItemTimes::product_s(double m, double n, double k, const ProductFormat& format, const DataSheet& gpu) const {
  const auto key = std::make_tuple(gpu.name, m, n, k, format.relative_rate, format.element_bytes);
  if (const auto found = products_.find(key); found != products_.end()) return found->second;
  KernelTask task;
  task.shape = {.op = "gemm", .m = m, .n = n, .k = k};
  task.gpu = gpu;
  task.relative_rate = format.relative_rate;
  task.element_bytes = format.element_bytes;
  return products_[key] = *kernels_->time(task).seconds;
}

namespace {

/// The format in which an item's product of class `chosen` runs.
const ProductFormat& format_of(const WorkItem& item, const ProductFormat& chosen, const KernelChoice& choice,
                               const DataSheet& gpu) {
  const ProductFormat& used = item.precision == Precision::fp32 ? choice.fp32 : chosen;
  if (used.relative_rate <= 0) throw_usage("no bf16 products on {}", gpu.name);
  return used;
}

ProductTime in_format(double seconds, const ProductFormat& format) {
  return {format.halvings == 0 ? seconds : 0, format.halvings == 1 ? seconds : 0, format.halvings == 2 ? seconds : 0};
}

}  // namespace

ProductTime ItemTimes::products(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice,
                                const DataSheet& gpu) const {
  const double n = static_cast<double>(item.dims[0]), k = static_cast<double>(item.dims[1]);
  const double m = std::max(1.0, std::round(item.rows.at(rows.sum)));
  const auto of = [&](double many, double width, double depth, const ProductFormat& format) {
    const ProductFormat& used = format_of(item, format, choice, gpu);
    return in_format(product_s(many, width, depth, used, gpu), used);
  };
  if (item.of_weight) return of(n, k, m, choice.weight_gradients);
  if (item.pass == Pass::forward) return of(m, n, k, choice.forward);
  ProductTime both = of(m, k, n, choice.input_gradients);
  both.add(of(n, k, m, choice.weight_gradients));
  return both;
}

ProductTime ItemTimes::grouped(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice,
                               const DataSheet& gpu) const {
  const double n = static_cast<double>(item.dims[0]), k = static_cast<double>(item.dims[1]);
  const double groups = std::max(1.0, static_cast<double>(item.dims[2]));
  GroupedProduct asked = equal_groups(groups, std::max(1.0, item.rows.at(rows.sum) / groups), n, k);
  if (rows.spread_over(item)) {
    double each = 0;
    for (const double group : rows.by_expert)
      if (std::round(group) >= 1) each += filled(group);
    asked.filled_rows = std::max(asked.filled_rows, each);
  }
  const auto of = [&](double width, double depth, bool weight_gradient, const ProductFormat& format) {
    const ProductFormat& used = format_of(item, format, choice, gpu);
    asked.n = width, asked.k = depth, asked.weight_gradient = weight_gradient;
    asked.relative_rate = used.relative_rate, asked.element_bytes = used.element_bytes;
    return in_format(kernels_->grouped_s(asked, choice.grouped, gpu), used);
  };
  if (item.of_weight) return of(n, k, true, choice.weight_gradients);
  if (item.pass == Pass::forward) return of(n, k, false, choice.forward);
  ProductTime both = of(k, n, false, choice.input_gradients);
  both.add(of(n, k, true, choice.weight_gradients));
  return both;
}

double ItemTimes::attention_factor(Pass pass, AttentionKernels kernels, const DataSheet& gpu) const {
  const auto [found, is_new] = attention_factors_.try_emplace({gpu.name, kernels, pass}, 1);
  if (!is_new) return found->second;
  const auto of = [&](const char* library) {
    return kernels_->library_factor(pass == Pass::forward ? "attention_forward" : "attention_backward", library, gpu);
  };
  found->second = kernels == AttentionKernels::flash2  ? of("FlashAttention-2")
                  : kernels == AttentionKernels::cudnn ? of("cuDNN")
                                                       : std::sqrt(of("FlashAttention-2") * of("cuDNN"));
  return found->second;
}

ItemTime ItemTimes::item(const WorkItem& item, const BoundRows& rows, const KernelChoice& choice,
                         const DataSheet& gpu) const {
  if (item.kernel == Kernel::gemm) return {.products = products(item, rows, choice, gpu)};
  if (item.kernel == Kernel::grouped_gemm) return {.products = grouped(item, rows, choice, gpu)};
  const double attention_rate = item.precision == Precision::fp32 ? choice.fp32.relative_rate : choice.attention_rate;
  if (item.kernel == Kernel::attention && choice.attention == AttentionKernels::unfused) {
    const UnfusedAttention kept = unfused_attention(item, gpu);
    return {.products = {.wide_s = kept.products_s / attention_rate}, .memory_s = kept.memory_s};
  }
  if (item.kernel == Kernel::attention)
    return {.attention_s =
                attention_time_s(item, gpu) / attention_rate * attention_factor(item.pass, choice.attention, gpu)};
  const double bytes = item.bytes(rows.sum), count = item.rows.at(rows.sum);
  if (!(bytes > 0)) return {};
  const double width = static_cast<double>(item.dims[0]);  // 0 for flat buffers, which have no rows
  return {.memory_s = kernels_->by_rows_s({count, width, bytes}, op_of(item.kernel), gpu)};
}

TimeBasis ItemTimes::explain(const WorkItem& item, const DataSheet& gpu) const {
  const std::string pass = to_string(item.pass);
  const std::string op = item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm ? to_string(item.kernel)
                         : item.kernel == Kernel::attention                                 ? "attention_" + pass
                                                                                            : "";
  const std::int64_t points = kernels_->points(op, gpu);
  return {to_string(item.kernel) + "/" + pass, points,
          points > 0 ? "published times on processors as those of " + gpu.name
                     : "published times of other GPUs, scaled by the data sheet"};
}

MeasuredKinds ItemTimes::measured_on(const DataSheet& gpu) const {
  return {.products = kernels_->points("gemm", gpu) > 0,
          .grouped = kernels_->points("grouped_gemm", gpu) > 0,
          .attention = kernels_->points("attention_forward", gpu) > 0,
          .memory = kernels_->points("", gpu) > 0};
}

}  // namespace wt
