#include "sim/validate/kernel_prices.hpp"

#include <algorithm>

#include "configs/spec/error.hpp"

namespace wt {
namespace {

// Dao 2023 (FlashAttention-2, arXiv 2307.08691), abstract: 50-73 % of the theoretical peak on A100.
constexpr double kAttentionShare = 0.6;

Product product(const WorkItem& item, double m, double n, double k) {
  const bool fp32 = item.precision == Precision::fp32;  // on tensor cores as tf32
  return {m, n, k, fp32 ? 0.5 : 1.0, fp32 ? 4.0 : 2.0};
}

}  // namespace

KernelPrices::KernelPrices(const std::vector<KernelRow>& kernels, const std::vector<CollectiveRow>& collectives) {
  std::map<std::string, std::vector<KernelSample>> products;
  std::map<std::string, std::vector<TimedRowKernel>> others;
  for (KernelSample& s : training_set({}, kernels)) {
    const std::string name = s.gpu.name;
    if (s.is_product())
      products[name].push_back(std::move(s));
    else
      others[name].push_back({{s.row->m, s.row->n, s.bytes}, s.row->seconds});
  }
  for (const auto& [name, samples] : products)
    if (ProductModel::enough(samples) && !others[name].empty()) {
      const DataSheet& sheet = samples.front().gpu;
      gpus_.emplace(name, Gpu{sheet, ProductModel(samples, sheet), fit_memory_bound(others[name], sheet)});
    }

  for (const CollectiveRow& row : collectives)
    if (CollectiveSample s = collective_sample(row); s.reason.empty() && s.kind == "exchange" && !s.many())
      exchanges_.push_back(std::move(s));
  std::vector<const CollectiveSample*> all;
  for (const CollectiveSample& s : exchanges_) all.push_back(&s);
  exchange_.emplace(all);
}

bool KernelPrices::knows(const std::string& gpu) const {
  const auto sheet = data_sheet(gpu);
  return sheet && gpus_.count(sheet->name) > 0;
}

const KernelPrices::Gpu& KernelPrices::at(const std::string& gpu) const {
  if (!knows(gpu))
    throw_error(Code::runtime, "kernel prices: found GPU '{}', which was not measured; ask knows()", gpu);
  return gpus_.at(data_sheet(gpu)->name);
}

double KernelPrices::product_s(const Gpu& gpu, const WorkItem& item, double m, double groups) {
  const double n = static_cast<double>(item.dims[0]), k = static_cast<double>(item.dims[1]);
  const auto one = [&](const Product& p) { return gpu.products.predict(p, gpu.sheet, "", true); };
  if (item.pass == Pass::forward) return groups * one(product(item, m, n, k));
  return groups * (one(product(item, m, k, n)) + one(product(item, n, k, m)));  // gradients of input and weight
}

double KernelPrices::item_s(const std::string& name, const WorkItem& item, double rows) const {
  const Gpu& gpu = at(name);
  const double m = item.rows.at(rows);
  if (m <= 0) return 0;
  switch (item.kernel) {
    case Kernel::gemm:
      return product_s(gpu, item, m, 1);
    case Kernel::grouped_gemm: {
      const auto groups = static_cast<double>(item.dims[2]);
      return product_s(gpu, item, std::max(1.0, m / groups), groups);
    }
    case Kernel::attention:
      return item.flops(rows) / (kAttentionShare * gpu.sheet.flops);
    default:
      return memory_bound_time_s({m, static_cast<double>(std::max<std::int64_t>(1, item.dims[0])), item.bytes(rows)},
                                 gpu.sheet, gpu.memory);
  }
}

double KernelPrices::exchange_s(const std::string& gpu, double bytes, std::int64_t ranks) const {
  if (ranks < 2) return 0;
  CollectiveRow row;
  row.gpu = at(gpu).sheet.name;
  row.collective = "alltoall";
  row.gpus = ranks;
  row.bytes = bytes;
  row.seconds = 1;  // a row without a time is refused; this one is not looked at
  return exchange_->seconds(collective_sample(row));
}

}  // namespace wt
