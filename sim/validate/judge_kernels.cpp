#include "sim/validate/judge_kernels.hpp"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <utility>

#include "configs/base/statistics.hpp"

namespace wt {
namespace {

/// The median share of the data sheet's peak that the other groups reach.
class TypicalShares {
 public:
  explicit TypicalShares(const std::vector<KernelPoint>& reference) {
    for (const KernelPoint& p : reference) by_kind_[kind(p)].push_back({&p.group, p.share_of_peak()});
  }
  std::optional<double> without(const KernelPoint& p) {
    const auto [found, is_new] = known_.try_emplace({kind(p), p.group});
    if (!is_new) return found->second;
    std::vector<double> shares;
    for (const auto& [group, share] : by_kind_[kind(p)])
      if (*group != p.group) shares.push_back(share);
    if (!shares.empty()) found->second = quantile(shares, 0.5);
    return found->second;
  }

 private:
  static std::string kind(const KernelPoint& p) {
    return p.is_attention() || p.is_grouped() ? p.shape.op : p.gpu.name + " " + p.shape.op;
  }
  std::map<std::string, std::vector<std::pair<const std::string*, double>>> by_kind_;
  std::map<std::pair<std::string, std::string>, std::optional<double>> known_;
};

std::string name_of(const KernelRow& row) {
  return !row.unusable.empty() ? row.gpu + " " + row.op
                               : fmt::format("{} {} m{} n{} k{} {}", row.gpu, row.op, row.m, row.n, row.k, row.dtype);
}

Judged judge(const KernelRow& row, const PublishedKernelFit& fit, TypicalShares& typical, GroupedOut grouped) {
  const KernelPoint point = kernel_point(row);
  Judged j;
  j.line = row.line;
  j.name = name_of(row);
  j.group = point.group;
  j.origin = point.origin;
  j.measured = row.seconds;
  if (!point.reason.empty()) {
    j.regime = row.unusable.empty() ? row.op : "other kernels";
    j.forecast.reason = j.baseline.reason = point.reason;
    return j;
  }
  const KernelTimes::Answer answer =
      point.is_grouped() ? fit.grouped_time(point, grouped) : fit.without(point.group).time(point);
  j.regime = answer.regime;
  j.forecast.value = answer.seconds;
  j.forecast.low = answer.low_s;
  j.forecast.high = answer.high_s;
  j.forecast.reason = j.baseline.reason = answer.reason;
  if (!answer.seconds) return j;
  j.forecast.evidence = only(row.assumed ? Evidence::assumed : answer.evidence);
  if (row.assumed)
    j.assumed.emplace_back(point.is_attention() ? "attention without a mask" : "groups of equally many rows");
  if (const auto share = typical.without(point)) j.baseline.value = point.least_s() / *share;
  j.baseline.evidence = j.forecast.evidence;
  return j;
}

}  // namespace

std::vector<Judged> judge_kernels(const std::vector<KernelRow>& rows, const PublishedKernelFit& fit,
                                  const std::vector<KernelPoint>& reference, GroupedOut grouped) {
  TypicalShares typical(reference);
  std::vector<Judged> judged;
  judged.reserve(rows.size());
  for (const KernelRow& row : rows) judged.push_back(judge(row, fit, typical, grouped));
  add_intervals(judged, &Judged::baseline);
  return judged;
}

}  // namespace wt
