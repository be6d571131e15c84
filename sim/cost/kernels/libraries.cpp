#include "sim/cost/kernels/libraries.hpp"

#include <cmath>
#include <map>
#include <set>

#include "configs/base/statistics.hpp"

namespace wt {
namespace {

double processor_flops(const DataSheet& gpu) { return gpu.flops / static_cast<double>(gpu.processors); }

}  // namespace

int kernel_generation(const DataSheet& gpu) { return gpu.generation + (gpu.amd ? kAmd : 0); }

Libraries::Libraries(const std::vector<LibraryRow>& rows) {
  for (const LibraryRow& row : rows)
    if (const auto sheet = data_sheet(row.gpu)) rows_.emplace_back(row, *sheet);
}

std::optional<Libraries::Factor> Libraries::factor(const LibraryKernel& kernel, bool as_unknown) const {
  std::vector<double> here, generation;
  std::map<std::string, std::vector<double>> others;
  std::set<std::string> origins;
  for (const auto& [row, gpu] : rows_) {
    if (row.kind != kernel.kind || kernel_generation(gpu) != kernel_generation(kernel.gpu)) continue;
    const double ratio = processor_flops(gpu) / processor_flops(kernel.gpu);
    if (ratio > kAlike || ratio < 1 / kAlike) continue;
    if (row.library != kernel.library) {
      others[row.library].push_back(row.log_factor);
      origins.insert(row.origin);
    } else if (!as_unknown) {
      generation.push_back(row.log_factor);
      if (gpu.name == kernel.gpu.name) here.push_back(row.log_factor);
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

std::vector<DataSheet> Libraries::measured_on(const std::string& kind, const std::string& library) const {
  std::vector<DataSheet> out;
  for (const auto& [row, gpu] : rows_)
    if (row.kind == kind && row.library == library) out.push_back(gpu);
  return out;
}

}  // namespace wt
