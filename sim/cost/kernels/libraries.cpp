#include "sim/cost/kernels/libraries.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/cost/fit/fit.hpp"

namespace wt {

std::optional<Libraries::Factor> Libraries::factor(const LibraryRow& row, bool as_unknown) const {
  std::vector<double> here, generation;
  std::map<std::string, std::vector<double>> others;
  std::set<std::string> origins;
  for (const LibraryRow& each : rows_) {
    if (each.kind != row.kind || each.group == row.group || each.generation != row.generation) continue;
    const double ratio = each.processor_flops / row.processor_flops;
    if (ratio > kAlike || ratio < 1 / kAlike) continue;
    if (each.library != row.library) {
      others[each.library].push_back(each.log_factor);
      origins.insert(each.origin);
    } else if (!as_unknown) {
      generation.push_back(each.log_factor);
      if (each.gpu == row.gpu) here.push_back(each.log_factor);
    }
  }
  if (here.size() >= kFewestRows) return Factor{quantile(here, 0.5), Known::on_this_gpu};
  if (generation.size() >= kFewestRows) return Factor{quantile(generation, 0.5), Known::on_this_generation};
  if (others.size() < kFewestLibraries || origins.size() < kFewestLibraries) return std::nullopt;
  std::vector<double> medians;
  for (const auto& [library, factors] : others) medians.push_back(quantile(factors, 0.5));
  const double middle = quantile(medians, 0.5);
  for (const double median : medians)
    if (std::abs(median - middle) > std::log(kWidest)) return std::nullopt;
  return Factor{middle, Known::never_measured};
}

}  // namespace wt
