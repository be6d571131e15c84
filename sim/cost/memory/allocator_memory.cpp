#include "sim/cost/memory/allocator_memory.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "configs/base/statistics.hpp"
#include "sim/statistics/normal_posterior.hpp"

namespace wt {
namespace {

/// Standard deviations before a job's own peak is measured: of the logarithm of what temporary memory is multiplied by,
/// of a workspace in GiB, and of a peak's own error in its logarithm. Rounded from those with the least error of
/// `validate memory --anchors 1`, so these rows are no blind test of them.
constexpr double kDynamicSpread = 0.25, kWorkspaceSpread_GiB = 3, kPeakSpread = 0.04;
/// Of another peak of the job, once one is known.
constexpr double kKnownSpread = 0.08;
constexpr double kGiB = 1024.0 * 1024 * 1024;

/// The constants that measured peaks make most likely. Peaks are no linear function of the factor: some steps of
/// Gauss-Newton.
MemoryConstants most_likely(const MemoryConstants& before, const std::vector<MeasuredPeak>& peaks) {
  const Eigen::Vector2d spreads(kDynamicSpread, kWorkspaceSpread_GiB);
  const auto rows = static_cast<Eigen::Index>(peaks.size());
  Eigen::VectorXd logs = Eigen::VectorXd::Zero(2);
  const auto with = [&] {
    return MemoryConstants{std::max(0.0, before.workspace_bytes + logs[1] * kGiB),
                           before.fragmentation * std::exp(logs[0])};
  };
  for (int step = 0; step < 8; ++step) {
    Eigen::MatrixXd by(rows, 2);
    Eigen::VectorXd values(rows);
    const MemoryConstants now = with();
    for (Eigen::Index i = 0; i < rows; ++i) {
      const MeasuredPeak& peak = peaks[static_cast<std::size_t>(i)];
      const double bytes = std::max(now.bytes(peak.live), 0.1 * peak.bytes);
      by.row(i) << now.fragmentation * peak.live.dynamic / bytes, kGiB / bytes;
      values[i] = std::log(peak.bytes / bytes) + by.row(i).dot(logs);
    }
    logs = normal_posterior(spreads, by, values, kPeakSpread).mean;
  }
  return with();
}

}  // namespace

bool by_formula(MemoryOf kind) { return kind == MemoryOf::states || kind == MemoryOf::activations; }

AllocatorMemory::AllocatorMemory(Kind allocated, Kind reserved, bool described)
    : allocated_(allocated), reserved_(reserved), described_(described) {}

MemoryForecast AllocatorMemory::of(MemoryOf kind, const LiveMemory& live) const {
  if (kind == MemoryOf::peak) {
    const MemoryForecast least = of(MemoryOf::peak_allocated, live), most = of(MemoryOf::peak_reserved, live);
    return {std::sqrt(least.bytes * most.bytes), std::min(least.low, most.low), std::max(least.high, most.high),
            most.evidence};
  }
  MemoryForecast out;
  double low = 0, high = 0;
  if (by_formula(kind)) {
    out.bytes = kind == MemoryOf::states ? live.kept : live.dynamic;
    out.evidence = only(Evidence::derived);
  } else {
    const Kind& own = kind == MemoryOf::peak_reserved ? reserved_ : allocated_;
    out.bytes = own.constants.bytes(live);
    const double by_shape = std::min(1.0, live.peak() / out.bytes);
    out.evidence = only(described_ ? Evidence::derived : Evidence::assumed, by_shape);
    out.evidence[static_cast<std::size_t>(own.constants_from)] += 1 - by_shape;
    std::tie(low, high) = own.log_interval;
  }
  out.low = out.bytes * std::min(1 - kShapeDoubt, std::exp(low));
  out.high = out.bytes * std::max(1 + kShapeDoubt, std::exp(high));
  return out;
}

AllocatorMemory AllocatorMemory::knowing(const std::vector<MeasuredPeak>& peaks) const {
  const auto known = [&](Kind kind, MemoryOf of) {
    std::vector<MeasuredPeak> own;
    for (const MeasuredPeak& peak : peaks)
      if (peak.of == of) own.push_back(peak);
    if (own.empty()) return kind;
    const double spread = kAt90 * kKnownSpread;
    return Kind{most_likely(kind.constants, own), Evidence::measured, {-spread, spread}};
  };
  return {known(allocated_, MemoryOf::peak_allocated), known(reserved_, MemoryOf::peak_reserved), described_};
}

AllocatorMemory AllocatorConstants::of_stack(const StackSpec& stack) const {
  const auto of = [&](const Kind& kind) {
    const Evidence from = kind.fitted.by_stack.empty()                 ? Evidence::assumed
                          : kind.fitted.by_stack.count(stack.name) > 0 ? Evidence::published
                                                                       : Evidence::derived;
    const auto known = kind.own.find(stack.name);
    return AllocatorMemory::Kind{kind.fitted.of(stack.name), from,
                                 !stack.memory_described() ? undescribed
                                 : known != kind.own.end() ? known->second
                                                           : kind.others};
  };
  return {of(allocated), of(reserved), stack.memory_described()};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryConstants, workspace_bytes, fragmentation)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FittedMemory, typical, by_stack)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AllocatorConstants::Kind, fitted, own, others)

void to_json(nlohmann::json& json, const AllocatorConstants& c) {
  json = {{"allocated", c.allocated}, {"reserved", c.reserved}, {"undescribed", c.undescribed}};
}

void from_json(const nlohmann::json& json, AllocatorConstants& c) {
  json.at("allocated").get_to(c.allocated);
  json.at("reserved").get_to(c.reserved);
  json.at("undescribed").get_to(c.undescribed);
}

}  // namespace wt
