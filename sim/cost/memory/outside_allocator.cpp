#include "sim/cost/memory/outside_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/statistics.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

double outside_by_formula(const StackSpec& stack, std::int64_t gpus) {
  constexpr double kMiB = 1 << 20, kContext = 0.6 * (1 << 30);
  if (gpus == 1) return kContext;
  constexpr double kChannels = 24, kSendChannels = 32, kOfNode = 8, kPipelinePeers = 2;
  constexpr double kRing = 12 * kChannels, kTree = 6 * kChannels, kNvls = 256, kNetwork = 2 * 9.2 * kChannels;
  constexpr double kSends = 16 * 0.5 * kChannels + kPipelinePeers * 12 * kSendChannels;
  const bool nodes = static_cast<double>(gpus) > kOfNode;
  const double data = kRing + kTree + kNvls + (nodes ? kNetwork : 0);
  const double model = stack.memory.resident_weights ? kRing + kNvls + kSends : 0;
  return kContext + (data + model) * kMiB;
}

double OutsideMemory::outside_relative(const StackSpec& stack, std::int64_t gpus) {
  constexpr std::int64_t kNode = 8;
  if (gpus == 1) return 1;
  const std::int64_t said = gpus > 0 ? gpus : kNode;
  return outside_by_formula(stack, said) / outside_by_formula({}, kNode);
}

OutsideMemory OutsideMemory::without(const std::string& origin) const {
  std::vector<Known> rest;
  for (const Known& k : known_)
    if (k.origin != origin) rest.push_back(k);
  return OutsideMemory(std::move(rest));
}

double OutsideMemory::log_bytes(const std::string& stack, bool alone, const std::string& without) const {
  std::vector<double> all, own;
  for (const Known& k : known_) {
    if (k.alone != alone || k.origin == without) continue;
    all.push_back(k.log_bytes);
    if (k.stack == stack) own.push_back(k.log_bytes);
  }
  if (all.empty()) return std::log(kAssumed_bytes);
  if (own.size() < kFewestOrigins) return mean(all);
  own.push_back(mean(all));
  return mean(own);
}

MemoryForecast OutsideMemory::of_stack(const StackSpec& stack, std::int64_t gpus) const {
  const bool alone = gpus == 1;
  std::vector<LogError> errors;
  std::size_t own = 0;
  for (const Known& k : known_) {
    if (k.alone != alone) continue;
    errors.push_back({k.origin, k.log_bytes - log_bytes(k.stack, alone, k.origin)});
    own += k.stack == stack.name ? 1 : 0;
  }
  const double bytes = outside_relative(stack, gpus) * std::exp(log_bytes(stack.name, alone));
  const auto [low, high] = log_interval(errors);
  const Evidence evidence = errors.empty()          ? Evidence::assumed
                            : own >= kFewestOrigins ? Evidence::published
                                                    : Evidence::derived;
  return {bytes, bytes * std::exp(low), bytes * std::exp(high), only(evidence)};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutsideMemory::Known, origin, stack, alone, log_bytes)

void to_json(nlohmann::json& json, const OutsideMemory& memory) { json = memory.known(); }

void from_json(const nlohmann::json& json, OutsideMemory& memory) {
  memory = OutsideMemory(json.get<std::vector<OutsideMemory::Known>>());
}

}  // namespace wt
