#include "sim/cost/memory/outside_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "configs/base/statistics.hpp"
#include "sim/cost/fit/conformal.hpp"

namespace wt {

OutsideMemory::OutsideMemory(const std::vector<OutsideRow>& rows, const std::vector<StackSpec>& stacks) {
  std::map<std::tuple<std::string, std::string, bool>, std::vector<double>> by_origin;
  for (const OutsideRow& row : rows)
    if (row.unusable.empty())
      by_origin[{row.origin, stack_of(row.framework, stacks).name, row.alone()}].push_back(
          std::log(row.outside_bytes()));
  for (const auto& [key, logs] : by_origin)
    known_.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), mean(logs)});
}

OutsideMemory OutsideMemory::without(const std::string& origin) const {
  OutsideMemory out;
  for (const Known& k : known_)
    if (k.origin != origin) out.known_.push_back(k);
  return out;
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

MemoryForecast OutsideMemory::of_stack(const std::string& stack, std::int64_t gpus) const {
  const bool alone = gpus == 1;
  std::vector<LogError> errors;
  std::size_t own = 0;
  for (const Known& k : known_) {
    if (k.alone != alone) continue;
    errors.push_back({k.origin, k.log_bytes - log_bytes(k.stack, alone, k.origin)});
    own += k.stack == stack ? 1 : 0;
  }
  const double bytes = std::exp(log_bytes(stack, alone));
  const auto [low, high] = log_interval(errors);
  const Evidence evidence = errors.empty()          ? Evidence::assumed
                            : own >= kFewestOrigins ? Evidence::published
                                                    : Evidence::derived;
  return {bytes, bytes * std::exp(low), bytes * std::exp(high), only(evidence)};
}

}  // namespace wt
