#include "sim/cost/kernels/kernel_times.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "sim/cost/kernels/attention_times.hpp"

namespace wt {
namespace {

constexpr const char* kWrittenForTheGpu = "cuDNN";
constexpr const char* kNearProducts = "gemm, constants of a GPU with the same processors";
constexpr const char* kFarProducts = "gemm, constants of another generation";
constexpr std::size_t kFewestOfRows = 5;  // points that memory-bound kernels of a GPU are fitted on

std::string product_regime(const KernelTask& t) {
  const double m = t.shape.m;
  return fmt::format("gemm, {}, {}", t.gpu.name,
                     m < 64     ? "m < 64"
                     : m < 256  ? "m 64-255"
                     : m < 1024 ? "m 256-1023"
                                : "m >= 1024");
}

RowKernel row_kernel(const KernelTask& t) { return {t.shape.m, t.shape.n, t.bytes()}; }

constexpr int kAmd = 100;  // generations that AMD's are away from NVIDIA's, for kernels

int kernel_generation(const DataSheet& gpu) { return gpu.generation + (gpu.amd ? kAmd : 0); }

/// How unlike a GPU another one is: generations apart (any of the same vendor is nearer), then processors.
std::pair<int, std::int64_t> distance_of(const DataSheet& a, const DataSheet& b) {
  return {std::abs(a.generation - b.generation) + (a.amd != b.amd ? kAmd : 0), std::abs(a.processors - b.processors)};
}

bool as_many_processors(const DataSheet& a, const DataSheet& b) {
  return kernel_generation(a) == kernel_generation(b) && a.processors == b.processors;
}

KernelTimes::Answer abstained(std::string regime, std::string reason) {
  KernelTimes::Answer out;
  out.regime = std::move(regime);
  out.reason = std::move(reason);
  return out;
}

}  // namespace

KernelTimes::KernelTimes(std::vector<KernelPoint> points) : points_(std::move(points)) {
  std::map<std::string, std::vector<KernelPoint>> products;
  for (const KernelPoint& p : points_)
    if (p.is_product())
      products[p.gpu.name].push_back(p);
    else if (p.is_bound_by_memory())
      row_by_row_[p.gpu.name].push_back(&p);
  for (const auto& [name, of_gpu] : products)
    if (ProductModel::enough(of_gpu)) {
      sheets_.emplace(name, of_gpu.front().gpu);
      models_.emplace(name, ProductModel(of_gpu, of_gpu.front().gpu));
    }
  std::vector<LibraryRow> rows;
  for (const KernelPoint& p : points_)
    if (p.is_attention()) {
      LibraryRow row = library_row(p);
      row.group = p.group;
      row.origin = p.origin;
      row.log_factor = std::log(p.seconds / attention_time_s(p.shape, p.relative_rate, p.gpu));
      rows.push_back(std::move(row));
    }
  libraries_.emplace(std::move(rows));
}

const LeftOutErrors& KernelTimes::errors() const {
  if (errors_) return *errors_;
  LeftOutErrors errors;
  for (const KernelPoint& p : points_)
    for (const Answer& a : {answer(p, p.group), carried_over(p, p.group)})
      if (a.seconds) errors.add(a.regime, p.group, std::log(p.seconds / *a.seconds));
  return errors_.emplace(std::move(errors));
}

KernelTimes::Answer KernelTimes::time(const KernelTask& task, const std::string& without) const {
  Answer out = answer(task, without);
  if (!out.seconds) return out;
  const auto [low, high] = errors().bounds(out.regime, without);
  out.low_s = *out.seconds * low;
  out.high_s = *out.seconds * high;
  return out;
}

KernelTimes::Answer KernelTimes::answer(const KernelTask& task, const std::string& without) const {
  return task.is_attention()         ? attention(task, without, false)
         : task.is_bound_by_memory() ? row_by_row(task, without)
                                     : product(task, without, false);
}

KernelTimes::Answer KernelTimes::carried_over(const KernelTask& task, const std::string& without) const {
  return task.is_attention()         ? attention(task, without, true)
         : task.is_bound_by_memory() ? abstained("", "")
                                     : product(task, without, true);
}

const std::pair<const std::string, ProductModel>* KernelTimes::donor(const DataSheet& gpu, bool another) const {
  const std::pair<const std::string, ProductModel>* best = nullptr;
  auto least = std::make_pair(0, std::int64_t{0});
  for (const auto& entry : models_) {
    if (entry.first == gpu.name) {
      if (!another) return &entry;
      continue;
    }
    const auto distance = distance_of(sheets_.at(entry.first), gpu);
    if (!best || distance < least) best = &entry, least = distance;
  }
  return best;
}

KernelTimes::Answer KernelTimes::product(const KernelTask& task, const std::string& without, bool another) const {
  const auto* model = donor(task.gpu, another);
  if (!model)
    return abstained("gemm, " + task.gpu.name, fmt::format("fewer than {} other shape families of any GPU to fit on",
                                                           ProductModel::kFewestGroups));
  const DataSheet& from = sheets_.at(model->first);
  const bool same = model->first == task.gpu.name;
  const bool near = as_many_processors(from, task.gpu);
  Answer out;
  out.regime = task.is_grouped() ? task.shape.op : same ? product_regime(task) : near ? kNearProducts : kFarProducts;
  out.seconds = model->second.predict(task.product(), task.gpu, without, near) * task.shape.groups;
  out.evidence = same ? Evidence::published : Evidence::derived;
  return out;
}

LibraryRow KernelTimes::library_row(const KernelTask& task) const {
  return {.kind = task.shape.op,
          .library = task.shape.implementation,
          .gpu = task.gpu.name,
          .generation = kernel_generation(task.gpu),
          .processor_flops = task.gpu.flops / static_cast<double>(task.gpu.processors),
          .group = "",
          .origin = "",
          .log_factor = 0};
}

KernelTimes::Answer KernelTimes::attention(const KernelTask& task, const std::string& without, bool as_unknown) const {
  LibraryRow row = library_row(task);
  row.group = without;
  const auto factor = libraries_->factor(row, as_unknown);
  if (!factor)
    return abstained(
        task.shape.op,
        fmt::format("{} of '{}' not measured at other shapes or sources, and other libraries too few or too "
                    "different",
                    task.shape.op, task.shape.implementation));
  Answer out;
  out.regime =
      task.shape.op + (factor->known == Libraries::Known::on_this_gpu          ? ", library measured"
                       : factor->known == Libraries::Known::on_this_generation ? ", library measured on another GPU"
                                                                               : ", library never measured");
  out.seconds = attention_time_s(task.shape, task.relative_rate, task.gpu) * std::exp(factor->log_factor);
  out.evidence = factor->known == Libraries::Known::on_this_gpu ? Evidence::published : Evidence::derived;
  return out;
}

KernelTimes::Answer KernelTimes::row_by_row(const KernelTask& task, const std::string& without) const {
  const RowFit& fit = row_fit(task.gpu, task.shape.op, without);
  const std::string regime =
      fit.own ? fmt::format("{}, {}", task.shape.op, task.gpu.name) : "bound by memory, op never measured";
  if (!fit.measured)
    return abstained(regime,
                     fmt::format("fewer than {} measurements of kernels that pass through memory", kFewestOfRows));
  Answer out;
  out.regime = regime;
  out.seconds = memory_bound_time_s(row_kernel(task), task.gpu, fit.constants);
  out.evidence = fit.own && fit.same ? Evidence::published : Evidence::derived;
  return out;
}

const KernelTimes::RowFit& KernelTimes::row_fit(const DataSheet& gpu, const std::string& op,
                                                const std::string& without) const {
  const auto [found, is_new] = row_fits_.try_emplace({gpu.name, op, without});
  RowFit& fit = found->second;
  if (!is_new) return fit;
  std::vector<TimedRowKernel> nearest;
  const DataSheet* of = nullptr;
  auto least = std::make_pair(0, std::int64_t{0});
  for (const auto& [name, points] : row_by_row_) {
    const DataSheet& other = points.front()->gpu;
    const auto distance = name == gpu.name ? std::make_pair(-1, std::int64_t{0}) : distance_of(other, gpu);
    if (of && distance >= least) continue;
    std::vector<TimedRowKernel> kernels;
    for (const KernelPoint* each : points)
      if ((op.empty() || each->shape.op == op) && each->group != without)
        kernels.push_back({row_kernel(*each), each->seconds});
    if (kernels.size() < kFewestOfRows) continue;
    nearest = std::move(kernels), of = &other, least = distance;
  }
  if (of)
    fit = {fit_memory_bound(nearest, *of), true, !op.empty(), of->name == gpu.name};
  else if (!op.empty())
    fit = row_fit(gpu, "", without);
  return fit;
}

double KernelTimes::library_factor(const std::string& op, const std::string& library, const DataSheet& gpu) const {
  const auto on = [&](const std::string& name, const DataSheet& where) {
    KernelTask task;
    task.shape.op = op;
    task.shape.implementation = name;
    task.gpu = where;
    const auto factor = libraries_->factor(library_row(task));
    return factor && factor->known != Libraries::Known::never_measured ? std::optional(std::exp(factor->log_factor))
                                                                       : std::nullopt;
  };
  if (const auto measured = on(library, gpu)) return *measured;
  const DataSheet* nearest = nullptr;
  for (const KernelPoint& p : points_)
    if (p.shape.op == op && p.shape.implementation == kWrittenForTheGpu &&
        (!nearest || distance_of(p.gpu, gpu) < distance_of(*nearest, gpu)))
      nearest = &p.gpu;
  return nearest ? on(kWrittenForTheGpu, *nearest).value_or(1) : 1;
}

double KernelTimes::by_rows_s(const RowKernel& kernel, const std::string& op, const DataSheet& gpu) const {
  return memory_bound_time_s(kernel, gpu, row_fit(gpu, op, "").constants);
}

std::int64_t KernelTimes::points(const std::string& op, const DataSheet& gpu) const {
  return std::count_if(points_.begin(), points_.end(), [&](const KernelPoint& p) {
    return as_many_processors(p.gpu, gpu) && (op.empty() ? p.is_bound_by_memory() : p.shape.op == op);
  });
}

std::pair<double, double> KernelTimes::carried_over_bounds(const DataSheet& gpu) const {
  const auto* model = donor(gpu, false);
  if (model && model->first == gpu.name) return {1, 1};
  return errors().bounds(model && as_many_processors(sheets_.at(model->first), gpu) ? kNearProducts : kFarProducts);
}

}  // namespace wt
