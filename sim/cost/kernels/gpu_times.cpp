#include "sim/cost/kernels/gpu_times.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "configs/spec/support/error.hpp"
#include "sim/cost/kernels/products.hpp"

namespace wt {

GpuTimes::GpuTimes(const std::vector<KernelRow>& reference) {
  std::map<std::string, std::vector<KernelSample>> products;
  for (const KernelRow& row : reference) {
    KernelSample s = kernel_sample(row);
    if (s.reason.empty() && s.is_product()) products[s.gpu.name].push_back(std::move(s));
  }
  for (const auto& [name, samples] : products) {
    if (!ProductModel::enough(samples)) continue;
    std::vector<TimedProduct> timed;
    for (const KernelSample& s : samples) timed.push_back({s.product, s.row->seconds});
    known_.push_back({samples.front().gpu, fit_wave(timed, samples.front().gpu, typical_wave())});
  }
  if (known_.empty())
    throw_error(Code::usage,
                "times of products: found no GPU with enough measurements, needs one; see configs/measurements");
}

double GpuTimes::product_s(double m, double n, double k, double relative_rate, const DataSheet& gpu) const {
  const auto key = std::make_tuple(gpu.name, m, n, k, relative_rate);
  if (const auto found = times_.find(key); found != times_.end()) return found->second;
  const auto distance = [&](const Known& each) {
    return std::make_pair(std::abs(each.gpu.generation - gpu.generation),
                          std::abs(each.gpu.processors - gpu.processors));
  };
  const Known& nearest = *std::min_element(known_.begin(), known_.end(),
                                           [&](const Known& a, const Known& b) { return distance(a) < distance(b); });
  const double bytes = relative_rate > 1 ? 1 : relative_rate < 1 ? 4 : 2;
  return times_[key] = wave_time_s({m, n, k, relative_rate, bytes}, gpu, nearest.constants);
}

double GpuTimes::products_s(const WorkItem& item, const BoundRows& rows, double relative_rate,
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

}  // namespace wt
