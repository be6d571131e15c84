#include "sim/program/work_item.hpp"

#include <cmath>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {
namespace {

struct KernelInfo {
  Kernel kernel;
  const char* name;
  std::vector<std::string> dims;
};

const std::vector<KernelInfo>& kernels() {
  static const std::vector<KernelInfo> table{
      {Kernel::gemm, "gemm", {"n", "k"}},
      {Kernel::grouped_gemm, "grouped_gemm", {"n", "k", "groups"}},
      {Kernel::attention, "attention", {"seq", "heads", "kv_heads", "head_dim"}},
      {Kernel::rmsnorm, "rmsnorm", {"width"}},
      {Kernel::rope, "rope", {"width"}},
      {Kernel::router, "router", {"experts", "top_k"}},
      {Kernel::permute, "permute", {"width"}},
      {Kernel::swiglu, "swiglu", {"width"}},
      {Kernel::add, "add", {"width"}},
      {Kernel::embedding, "embedding", {"width"}},
      {Kernel::cross_entropy, "cross_entropy", {"vocab"}},
      {Kernel::adamw, "adamw", {}},
      {Kernel::copy, "copy", {}},
      {Kernel::layernorm, "layernorm", {"width"}},
      {Kernel::gelu, "gelu", {"width"}},
      {Kernel::bias, "bias", {"width"}},
      {Kernel::host_copy, "host_copy", {}},
      {Kernel::host_adamw, "host_adamw", {}},
  };
  return table;
}

const KernelInfo& info(Kernel kernel) { return kernels()[static_cast<std::size_t>(kernel)]; }

}  // namespace

std::string to_string(Kernel kernel) { return info(kernel).name; }
const std::vector<std::string>& dim_names(Kernel kernel) { return info(kernel).dims; }
std::string to_string(Pass pass) { return pass == Pass::forward ? "forward" : "backward"; }

Kernel kernel_from_string(const std::string& word) {
  for (const auto& entry : kernels())
    if (entry.name == word) return entry.kernel;
  throw_usage("kernel: found '{}', known are the work items of sim/program/work_item.hpp", word);
}

WorkItem make_item(Kernel kernel, Pass pass, Precision precision, Amount rows, std::array<std::int64_t, 4> dims) {
  WorkItem item;
  item.kernel = kernel;
  item.pass = pass;
  item.precision = precision;
  item.rows = rows;
  item.dims = dims;
  return item;
}

bool has_two_gradients(const WorkItem& item) {
  return item.pass == Pass::backward && (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm);
}

WorkItem gradient_of_input(WorkItem product) {
  product.pass = Pass::forward;
  std::swap(product.dims[0], product.dims[1]);
  return product;
}

WorkItem gradient_of_weight(WorkItem product) {
  product.pass = Pass::forward;
  product.of_weight = true;
  return product;
}

double WorkItem::mean_keys() const {
  const double seq = static_cast<double>(dims[0]), w = static_cast<double>(window);
  return window == 0 || window >= dims[0] ? seq / 2 : w - w * w / (2 * seq);
}

double WorkItem::flops(double bound_rows) const {
  const double m = rows.at(bound_rows);
  const auto d = [&](std::size_t i) { return static_cast<double>(dims[i]); };
  const double passes = pass == Pass::forward ? 1.0 : 2.0;
  switch (kernel) {
    case Kernel::gemm:
    case Kernel::grouped_gemm:
      return passes * 2.0 * m * d(0) * d(1);
    case Kernel::attention:  // two products, half of them masked; backward recomputes one and computes four
      return (pass == Pass::forward ? 1.0 : 2.5) * 2.0 * m * d(0) * 2.0 * mean_keys() * d(1) * d(3);
    case Kernel::cross_entropy:
      return passes * 4.0 * m * d(0);
    case Kernel::router:
      return passes * 10.0 * m * d(0);
    case Kernel::adamw:
    case Kernel::host_adamw:
      return 15.0 * m;
    case Kernel::host_copy:
      return 0;
    default:
      return passes * 4.0 * m * std::max(1.0, d(0));
  }
}

double WorkItem::bytes(double bound_rows) const {
  const double m = rows.at(bound_rows), word = precision == Precision::fp32 ? 4.0 : 2.0;
  const auto d = [&](std::size_t i) { return static_cast<double>(dims[i]); };
  const bool back = pass == Pass::backward;
  switch (kernel) {
    case Kernel::gemm:
      return word * (m * d(1) + m * d(0) + d(0) * d(1)) * (back ? 2.0 : 1.0);
    case Kernel::grouped_gemm:
      return word * (m * d(1) + m * d(0) + d(2) * d(0) * d(1)) * (back ? 2.0 : 1.0);
    case Kernel::attention:
      return word * m * d(0) * d(3) * (2.0 * d(1) + 2.0 * d(2)) * (back ? 2.0 : 1.0);
    case Kernel::rmsnorm:
    case Kernel::layernorm:
    case Kernel::gelu:
      return word * m * d(0) * (back ? 3.0 : 2.0);
    case Kernel::rope:
      return word * m * d(0) * 2.0;
    case Kernel::router:
      return 4.0 * m * d(0) * (back ? 3.0 : 2.0) + 12.0 * m * d(1);
    case Kernel::permute:
      return word * m * d(0) * 2.0;
    case Kernel::swiglu:
      return word * m * d(0) * (back ? 5.0 : 3.0);
    case Kernel::add:
      return word * m * d(0) * 3.0;
    case Kernel::embedding:
      return word * m * d(0) * 2.0;
    case Kernel::cross_entropy:
      return 4.0 * m * d(0) * 2.0;
    case Kernel::adamw:
    case Kernel::host_adamw:
      return 28.0 * m;  // reads p, m, v, g; writes p, m, v; all fp32
    case Kernel::copy:
      return 2.0 * word * m;
    case Kernel::bias:
      return word * m * d(0) * (back ? 1.0 : 2.0);
    case Kernel::host_copy:
      return m;
  }
  return 0;
}

std::map<std::string, std::int64_t> WorkItem::shape(double bound_rows) const {
  std::map<std::string, std::int64_t> out{{"rows", std::llround(rows.at(bound_rows))}};
  const auto& names = dim_names(kernel);
  for (std::size_t i = 0; i < names.size(); ++i) out[names[i]] = dims[i];
  if (window > 0) out["window"] = window;
  return out;
}

}  // namespace wt
