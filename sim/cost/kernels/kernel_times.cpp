#include "sim/cost/kernels/kernel_times.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/cost/kernels/attention_times.hpp"

namespace wt {
namespace {

constexpr const char* kWrittenForTheGpu = "cuDNN";
constexpr const char* kNearProducts = "gemm, constants of a GPU with the same processors";
constexpr const char* kFarProducts = "gemm, constants of another generation";

std::string product_regime(const KernelTask& t) {
  const double m = t.shape.m;
  return fmt::format("gemm, {}, {}", t.gpu.name,
                     m < 64     ? "m < 64"
                     : m < 256  ? "m 64-255"
                     : m < 1024 ? "m 256-1023"
                                : "m >= 1024");
}

/// Distance between two GPUs: first generations (any of the same vendor is nearer), then processors.
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

KernelTimes::KernelTimes(KernelConstants constants)
    : constants_(std::move(constants)), libraries_(constants_.libraries) {
  const auto add = [&](const std::string& gpu) {
    if (const auto sheet = data_sheet(gpu)) sheets_.emplace(gpu, *sheet);
  };
  for (const ProductConstants& each : constants_.products)
    if (const auto sheet = data_sheet(each.gpu)) products_.emplace_back(each, *sheet);
  for (const RowConstants& each : constants_.rows) add(each.gpu);
  for (const PointCount& each : constants_.counts) add(each.gpu);
}

KernelTimes::Answer KernelTimes::time(const KernelTask& task) const {
  Answer out = answer(task);
  if (!out.seconds) return out;
  const auto [low, high] = constants_.bounds.of(out.regime);
  out.low_s = *out.seconds * low;
  out.high_s = *out.seconds * high;
  return out;
}

KernelTimes::Answer KernelTimes::answer(const KernelTask& task) const {
  return task.is_attention()         ? attention(task, false)
         : task.is_grouped()         ? grouped(task, false)
         : task.is_bound_by_memory() ? row_by_row(task)
                                     : product(task, false);
}

KernelTimes::Answer KernelTimes::carried_over(const KernelTask& task) const {
  return task.is_attention()         ? attention(task, true)
         : task.is_grouped()         ? grouped(task, true)
         : task.is_bound_by_memory() ? abstained("", "")
                                     : product(task, true);
}

const ProductModel* KernelTimes::donor(const DataSheet& gpu, bool another) const {
  const ProductModel* best = nullptr;
  for (const ProductModel& each : products_) {
    if (each.gpu().name == gpu.name) {
      if (!another) return &each;
      continue;
    }
    if (!best || distance_of(each.gpu(), gpu) < distance_of(best->gpu(), gpu)) best = &each;
  }
  return best;
}

KernelTimes::Answer KernelTimes::product(const KernelTask& task, bool another) const {
  const ProductModel* model = donor(task.gpu, another);
  if (!model) return abstained("gemm, " + task.gpu.name, "too few shape families of any GPU to fit on");
  const bool same = model->gpu().name == task.gpu.name;
  const bool near = as_many_processors(model->gpu(), task.gpu);
  Answer out;
  out.regime = same ? product_regime(task) : near ? kNearProducts : kFarProducts;
  out.seconds = model->predict(task.product(), task.gpu, near);
  out.evidence = same ? Evidence::published : Evidence::derived;
  return out;
}

KernelTimes::Answer KernelTimes::grouped(const KernelTask& task, bool as_unknown) const {
  const std::string library = as_unknown ? "" : task.shape.implementation;
  const bool known = knows_library(constants_.grouped, library);
  Answer out;
  out.regime = task.shape.op + (task.shape.weight_gradient ? ", weight gradient"
                                : known                    ? ", library measured"
                                                           : ", library never measured");
  out.seconds = grouped_s(task.grouped(), library, task.gpu);
  out.evidence = known && points(task.shape.op, task.gpu) > 0 ? Evidence::published : Evidence::derived;
  return out;
}

KernelTimes::Answer KernelTimes::attention(const KernelTask& task, bool as_unknown) const {
  const auto factor = libraries_.factor({task.shape.op, task.shape.implementation, task.gpu}, as_unknown);
  if (!factor)
    return abstained(
        task.shape.op,
        fmt::format("{} of '{}' not measured at other shapes or sources, and other libraries too few or too different",
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

KernelTimes::Answer KernelTimes::row_by_row(const KernelTask& task) const {
  const RowFit& fit = row_fit(task.gpu, task.shape.op);
  const std::string regime =
      fit.own ? fmt::format("{}, {}", task.shape.op, task.gpu.name) : "bound by memory, op never measured";
  if (!fit.measured) return abstained(regime, "too few measurements of kernels that pass through memory");
  Answer out;
  out.regime = regime;
  out.seconds = memory_bound_time_s({task.shape.m, task.shape.n, task.bytes}, task.gpu, fit.constants);
  out.evidence = fit.own && fit.same ? Evidence::published : Evidence::derived;
  return out;
}

const KernelTimes::RowFit& KernelTimes::row_fit(const DataSheet& gpu, const std::string& op) const {
  const auto [found, is_new] = row_fits_.try_emplace({gpu.name, op});
  RowFit& fit = found->second;
  if (!is_new) return fit;
  const RowConstants* nearest = nullptr;
  auto least = std::make_pair(0, std::int64_t{0});
  for (const RowConstants& each : constants_.rows) {
    const auto sheet = sheets_.find(each.gpu);
    if (each.op != op || sheet == sheets_.end()) continue;
    const auto distance = each.gpu == gpu.name ? std::make_pair(-1, std::int64_t{0}) : distance_of(sheet->second, gpu);
    if (!nearest || distance < least) nearest = &each, least = distance;
  }
  if (nearest)
    fit = {nearest->constants, true, !op.empty(), nearest->gpu == gpu.name};
  else if (!op.empty())
    fit = row_fit(gpu, "");
  return fit;
}

double KernelTimes::library_factor(const std::string& op, const std::string& library, const DataSheet& gpu) const {
  const auto on = [&](const std::string& name, const DataSheet& where) {
    const auto factor = libraries_.factor({op, name, where});
    return factor && factor->known != Libraries::Known::never_measured ? std::optional(std::exp(factor->log_factor))
                                                                       : std::nullopt;
  };
  if (const auto measured = on(library, gpu)) return *measured;
  const std::vector<DataSheet> others = libraries_.measured_on(op, kWrittenForTheGpu);
  const auto nearest =
      std::ranges::min_element(others, {}, [&](const DataSheet& other) { return distance_of(other, gpu); });
  return nearest == others.end() ? 1 : on(kWrittenForTheGpu, *nearest).value_or(1);
}

double KernelTimes::by_rows_s(const RowKernel& kernel, const std::string& op, const DataSheet& gpu) const {
  return memory_bound_time_s(kernel, gpu, row_fit(gpu, op).constants);
}

std::int64_t KernelTimes::points(const std::string& op, const DataSheet& gpu) const {
  std::int64_t sum = 0;
  for (const PointCount& count : constants_.counts) {
    KernelTask of;
    of.shape.op = count.op;
    const auto sheet = sheets_.find(count.gpu);
    if (sheet != sheets_.end() && as_many_processors(sheet->second, gpu) &&
        (op.empty() ? of.is_bound_by_memory() : count.op == op))
      sum += count.points;
  }
  return sum;
}

std::pair<double, double> KernelTimes::carried_over_bounds(const DataSheet& gpu) const {
  const ProductModel* model = donor(gpu, false);
  if (model && model->gpu().name == gpu.name) return {1, 1};
  return constants_.bounds.of(model && as_many_processors(model->gpu(), gpu) ? kNearProducts : kFarProducts);
}

}  // namespace wt
