#include "sim/cost/memory/allocator_memory.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

namespace wt {

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
