#include "sim/program/compose/expert_copies.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace wt {
namespace {

std::vector<std::int64_t> experts_of(const ModelSpec& model, const Layout& layout, std::int64_t layer,
                                     std::int64_t rank) {
  const std::int64_t n = layout.slots_per_rank(model);
  std::vector<std::int64_t> out;
  for (std::int64_t slot = rank * n; slot < (rank + 1) * n; ++slot) out.push_back(layout.expert_in_slot(layer, slot));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

bool has_copies(const ModelSpec& model, const Layout& layout) { return layout.slots(model) > model.experts; }

bool is_further_copy(const Layout& layout, std::int64_t layer, std::int64_t slot) {
  for (std::int64_t lower = 0; lower < slot; ++lower)
    if (layout.expert_in_slot(layer, lower) == layout.expert_in_slot(layer, slot)) return true;
  return false;
}

std::vector<double> rows_per_slot(const Layout& layout, std::int64_t layer, const std::vector<double>& counts) {
  if (layout.placement.empty()) return counts;
  const auto& slots = layout.placement[static_cast<std::size_t>(layer)];
  std::vector<double> copies(counts.size(), 0.0), seen(counts.size(), 0.0), out;
  for (const std::int64_t e : slots) copies[static_cast<std::size_t>(e)] += 1;
  for (const std::int64_t expert : slots) {
    const std::size_t e = static_cast<std::size_t>(expert);
    const double each = counts[e] / copies[e], more = std::fmod(counts[e], copies[e]);
    const bool whole = std::floor(counts[e]) == counts[e];
    out.push_back(whole ? std::floor(each) + (seen[e] < more ? 1 : 0) : each);
    seen[e] += 1;
  }
  return out;
}

std::vector<std::int64_t> CopyExchange::rows() const {
  std::vector<std::int64_t> out;
  for (const auto& with : shared) out.push_back(static_cast<std::int64_t>(with.size()));
  return out;
}

std::int64_t CopyExchange::total() const {
  const auto each = rows();
  return std::accumulate(each.begin(), each.end(), std::int64_t{0});
}

CopyExchange copy_exchange(const ModelSpec& model, const Layout& layout, std::int64_t layer, std::int64_t expert_rank) {
  CopyExchange out;
  out.experts = experts_of(model, layout, layer, expert_rank);
  for (std::int64_t rank = 0; rank < layout.expert; ++rank) {
    auto& both = out.shared.emplace_back();
    if (rank == expert_rank) continue;
    const auto theirs = experts_of(model, layout, layer, rank);
    std::set_intersection(out.experts.begin(), out.experts.end(), theirs.begin(), theirs.end(),
                          std::back_inserter(both));
  }
  return out;
}

}  // namespace wt
