#include "sim/replay/routing_table.hpp"

#include <algorithm>

namespace wt {

RoutingTable::RoutingTable(const RoutingSource& routing, const Layout& layout, int layers, int microbatches,
                           std::int64_t step, std::vector<std::int64_t> groups)
    : layout_(layout), expert_(layout.expert), layers_(layers), groups_(std::move(groups)) {
  if (expert_ == 1) return;
  const std::size_t n = static_cast<std::size_t>(expert_);
  for (int microbatch = 0; microbatch < microbatches; ++microbatch)
    for (int layer = 0; layer < layers; ++layer)
      for (std::int64_t group : groups_) {
        std::vector<double> sends(n * n), received(n, 0.0);
        for (std::int64_t source = 0; source < expert_; ++source) {
          const auto to =
              rows_received({routing.counts(step, microbatch, layer, group * expert_ + source)}, layout, layer);
          for (std::size_t e = 0; e < n; ++e) {
            sends[static_cast<std::size_t>(source) * n + e] = to[e];
            received[e] += to[e];
          }
        }
        sends_.push_back(std::move(sends));
        rows_.push_back(std::move(received));
      }
}

std::size_t RoutingTable::at(int microbatch, int layer, std::int64_t rank) const {
  const auto group = std::lower_bound(groups_.begin(), groups_.end(), layout_.data_rank(rank) / expert_) - groups_.begin();
  return static_cast<std::size_t>((microbatch * layers_ + layer)) * groups_.size() + static_cast<std::size_t>(group);
}

double RoutingTable::rows(int microbatch, int layer, std::int64_t rank) const {
  if (expert_ == 1 || microbatch < 0 || layer < 0) return 0;
  return rows_[at(microbatch, layer, rank)][static_cast<std::size_t>(layout_.data_rank(rank) % expert_)];
}

const std::vector<double>& RoutingTable::sends(int microbatch, int layer, std::int64_t rank) const {
  return sends_[at(microbatch, layer, rank)];
}

}  // namespace wt
