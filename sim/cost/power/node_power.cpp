#include "sim/cost/power/node_power.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "configs/base/statistics.hpp"

namespace wt {
namespace {

/// 80 % interval of a share of the thermal design power.
struct PowerShare {
  double low, high;
};

// Computing. On an H200 of 700 W long products and attention drew 97 % of it, and memory-bound kernels 47 %
// (configs/profiles/h200-dbrx.json: mean_power_W). Products and attention are assumed to take 85 % of a step's
// computation: 0.85 x 0.97 + 0.15 x 0.47.
constexpr PowerShare kCompute = {0.82, 0.98};
// Waiting for a collective: assumed between idling and the copies of the same profile.
constexpr PowerShare kCommunicate = {0.25, 0.55};
// A GPU with a process and no kernels: assumed, about 100 W of 700.
constexpr PowerShare kIdle = {0.10, 0.20};
// The host, over the design power of its GPUs. Air: computationally intensive training on 8 H100 draws 76 % of the
// node's rated 10.2 kW (Newkirk et al. 2025, arXiv 2506.14551), less 0.90 x 5.6 kW. Liquid: the same without fans,
// which are assumed to take 15 to 20 % of a node.
constexpr PowerShare kHostInAir = {0.38, 0.58}, kHostInLiquid = {0.18, 0.34};

PriceAmount amount_of(double watts, const PowerShare& share, Evidence kind, const std::string& what) {
  return {watts * share.low,
          watts * share.high,
          "2026-11-29",
          {kind, fmt::format("{:g} to {:g} of {}", share.low, share.high, what)}};
}

/// The step at another time: it computes for as many seconds as predicted, and waits for the rest.
StepShares at_time(const ChargedStep& step, double seconds) {
  const double computing = std::min(1.0, step.shares.computing * step.step_s / seconds);
  const double waiting = 1 - step.shares.computing;
  return {computing, (1 - computing) * (waiting > 0 ? step.shares.communicating / waiting : 1)};
}

}  // namespace

double NodeWatts::of_gpu(StepShares step) const {
  const double computing = std::clamp(step.computing, 0.0, 1.0);
  const double communicating = std::clamp(step.communicating, 0.0, 1 - computing);
  return computing * compute + communicating * communicate + (1 - computing - communicating) * idle;
}

NodeWatts node_watts(const PowerSpec& power, double z) {
  const auto at = [&](const PriceAmount& amount) {
    return std::max(0.0, amount.middle() + z * (amount.high - amount.low) / (2 * kAt90));
  };
  return {at(power.compute_W), at(power.communicate_W), at(power.idle_W), at(power.host_W)};
}

NodeCooling usual_cooling(const DataSheet& gpu) {
  return gpu.name.starts_with("GB") ? NodeCooling::liquid : NodeCooling::air;
}

PowerSpec data_sheet_power(const DataSheet& gpu, std::int64_t gpus_per_node, NodeCooling cooling) {
  const bool air = cooling == NodeCooling::air;
  const std::string of_gpu = fmt::format("the {:g} W of {}", gpu.power_W, gpu.name);
  return {amount_of(gpu.power_W, kCompute, Evidence::derived, of_gpu),
          amount_of(gpu.power_W, kCommunicate, Evidence::assumed, of_gpu),
          amount_of(gpu.power_W, kIdle, Evidence::assumed, of_gpu),
          amount_of(gpu.power_W * static_cast<double>(gpus_per_node), air ? kHostInAir : kHostInLiquid,
                    Evidence::derived, of_gpu + (air ? " and fans" : ", without fans"))};
}

StepEnergy step_energy(const PowerSpec& power, const ChargedStep& step) {
  const auto watts = [&](double z, double seconds) {
    const NodeWatts node = node_watts(power, z);
    return node.of_gpu(at_time(step, seconds)) + node.host / static_cast<double>(step.gpus_per_node);
  };
  const auto joules = [&](double z, double seconds) {
    return watts(z, seconds) * seconds * static_cast<double>(step.gpus) / step.tokens;
  };
  /// The deviations on the same side add as those of independent errors.
  const auto amount = [&](const auto& of) {
    const double value = of(0, step.step_s);
    double below = 0, above = 0;
    for (const double end : {of(-kAt90, step.step_s), of(kAt90, step.step_s), of(0, step.low_s), of(0, step.high_s)})
      (end < value ? below : above) += (end - value) * (end - value);
    return EnergyAmount{value, std::max(0.0, value - std::sqrt(below)), value + std::sqrt(above)};
  };
  return {amount(watts), amount(joules)};
}

}  // namespace wt
