#include "sim/fit/kernel_fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/cost/kernels/attention_times.hpp"
#include "sim/fit/kernel_constants_fit.hpp"
#include "sim/statistics/evenly.hpp"

namespace wt {
namespace {

// Enough to fit ten constants without one group or one fold.
constexpr std::size_t kFewestGroupsOfProducts = 5, kFewestProducts = 60;
constexpr std::size_t kMostFitted = 1600;        // products per fit; more only cost time
constexpr std::size_t kMostErrorsOfOrigin = 12;  // so that our own profiles do not hide the errors of the others
constexpr std::size_t kFewestOfRows = 5;         // points needed to fit the memory-bound kernels of a GPU

RowKernel row_kernel(const KernelPoint& p) { return {p.shape.m, p.shape.n, p.bytes}; }

}  // namespace

PublishedKernelFit::PublishedKernelFit(std::vector<KernelPoint> points)
    : points_(std::move(points)), grouped_(points_) {
  std::map<std::string, std::vector<const KernelPoint*>> products;
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (const KernelPoint& p : points_) {
    if (p.is_product()) products[p.gpu.name].push_back(&p);
    ++counts[{p.gpu.name, p.shape.op}];
  }
  for (const auto& [of, number] : counts) counts_.push_back({of.first, of.second, number});
  for (auto& [name, of_gpu] : products) fit_products(std::move(of_gpu));

  std::map<std::string, std::vector<const KernelPoint*>> groups;
  for (const KernelPoint& p : points_)
    if (!p.is_grouped()) groups[p.group].push_back(&p);
  for (const auto& [group, members] : groups) {
    groups_.insert(group);
    const KernelTimes others(constants_without(group, {}));
    for (const KernelPoint* p : members)
      for (const KernelTimes::Answer& a : {others.time(*p), others.carried_over(*p)})
        if (a.seconds) errors_.add(a.regime, group, std::log(p->seconds / *a.seconds));
  }
  add_grouped_errors();
}

/// Of products whose origin is left out, and of products whose library is.
void PublishedKernelFit::add_grouped_errors() {
  std::map<std::string, std::vector<const KernelPoint*>> origins;
  for (const KernelPoint& p : grouped_.points()) origins[p.origin].push_back(&p);
  for (const auto& [origin, members] : origins)
    for (const KernelPoint* p : evenly(members, kMostErrorsOfOrigin))
      for (const GroupedOut out : {GroupedOut::origin, GroupedOut::library}) {
        KernelConstants others;
        others.grouped = grouped_.without(out, *p);
        const KernelTimes::Answer a = KernelTimes(std::move(others)).time(*p);
        errors_.add(a.regime, origin, std::log(p->seconds / *a.seconds));
      }
}

KernelTimes::Answer PublishedKernelFit::grouped_time(const KernelPoint& product, GroupedOut out) const {
  KernelConstants others;
  others.grouped = grouped_.without(out, product);
  others.bounds = bounds_without(product.origin);
  others.counts = counts_;
  return KernelTimes(std::move(others)).time(product);
}

const ErrorBounds& PublishedKernelFit::bounds_without(const std::string& group) const {
  const auto [found, is_new] = bounds_.try_emplace(group);
  if (is_new) found->second = errors_.bounds(group);
  return found->second;
}

void PublishedKernelFit::fit_products(std::vector<const KernelPoint*> points) {
  Products out;
  out.gpu = points.front()->gpu;
  std::ranges::stable_sort(points, {}, [](const KernelPoint* p) { return p->shape.m; });
  std::set<std::string> groups;
  for (const KernelPoint* p : points) groups.insert(p->group);
  if (points.size() < kFewestProducts || groups.size() < kFewestGroupsOfProducts) return;
  out.groups.assign(groups.begin(), groups.end());
  for (std::size_t fold = 0; fold <= kFolds; ++fold) {
    std::vector<TimedProduct> others;
    for (const KernelPoint* p : points)
      if (fold == kFolds || out.fold_of(p->group) != fold) others.push_back({p->product(), p->seconds});
    std::vector<TimedProduct> fitted;
    const std::size_t stride = (others.size() + kMostFitted - 1) / kMostFitted;
    for (std::size_t i = 0; i < others.size(); i += stride) fitted.push_back(others[i]);
    out.folds.push_back(fit_wave(fitted, out.gpu, typical_wave()));
  }
  out.points = std::move(points);
  products_.push_back(std::move(out));
}

std::size_t PublishedKernelFit::Products::fold_of(const std::string& group) const {
  const auto at = std::ranges::lower_bound(groups, group);
  if (at == groups.end() || *at != group) return kFolds;
  return static_cast<std::size_t>(at - groups.begin()) % kFolds;
}

KernelConstants PublishedKernelFit::constants_without(const std::string& group, ErrorBounds bounds) const {
  KernelConstants out;
  out.bounds = std::move(bounds);
  for (const Products& each : products_) {
    ProductConstants& of = out.products.emplace_back();
    of.gpu = each.gpu.name;
    of.wave = each.folds[each.fold_of(group)];
    for (const KernelPoint* p : each.points)
      if (p->group != group)
        of.residuals.push_back({p->shape.m, p->shape.n, p->shape.k, p->relative_rate,
                                std::log(p->seconds / wave_time_s(p->product(), each.gpu, of.wave))});
  }
  add_rows(group, out);
  for (const KernelPoint& p : points_)
    if (p.is_attention() && p.group != group)
      out.libraries.push_back({p.shape.op, p.shape.implementation, p.gpu.name, p.origin,
                               std::log(p.seconds / attention_time_s(p.shape, p.relative_rate, p.gpu))});
  out.grouped = grouped_.constants();
  out.counts = counts_;
  return out;
}

void PublishedKernelFit::add_rows(const std::string& without, KernelConstants& out) const {
  using GpuAndOp = std::pair<std::string, std::string>;
  std::map<GpuAndOp, std::vector<const KernelPoint*>> kernels;
  std::set<GpuAndOp> fewer;  // GPUs and ops that lost points of the group `without`
  for (const KernelPoint& p : points_) {
    if (!p.is_bound_by_memory()) continue;
    for (const std::string& op : {p.shape.op, std::string()}) {
      if (p.group == without)
        fewer.insert({p.gpu.name, op});
      else
        kernels[{p.gpu.name, op}].push_back(&p);
    }
  }
  for (const auto& [of, points] : kernels) {
    if (points.size() < kFewestOfRows) continue;
    const auto [found, is_new] = row_fits_.try_emplace({of.first, of.second, fewer.count(of) > 0 ? without : ""});
    if (is_new) {
      std::vector<TimedRowKernel> timed;
      for (const KernelPoint* p : points) timed.push_back({row_kernel(*p), p->seconds});
      found->second = fit_memory_bound(timed, points.front()->gpu);
    }
    out.rows.push_back({of.first, of.second, found->second});
  }
}

const KernelTimes& PublishedKernelFit::without(const std::string& group) const {
  const std::string known = groups_.count(group) > 0 ? group : "";
  const auto found = without_.find(known);
  if (found != without_.end()) return found->second;
  return without_.emplace(known, KernelTimes(constants_without(known, bounds_without(known)))).first->second;
}

}  // namespace wt
