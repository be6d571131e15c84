#include "sim/replay/routing_table.hpp"

#include <algorithm>
#include <numeric>

#include "sim/program/compose/expert_copies.hpp"

namespace wt {

RoutingTable::RoutingTable(const RoutingSource& routing, const Layout& layout, int layers, int microbatches,
                           std::int64_t step, std::vector<std::int64_t> groups)
    : layout_(layout),
      expert_(layout.expert),
      layers_(layers),
      last_(microbatches - 1),
      alike_(routing.same_in_every_microbatch()),
      groups_(std::move(groups)) {
  const std::size_t n = static_cast<std::size_t>(expert_);
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    if (alike_ && microbatch > 0 && microbatch < last_) continue;
    for (int layer = 0; layer < layers; ++layer)
      for (std::int64_t group : groups_) {
        std::vector<double> sends(n * n), received;
        for (std::int64_t source = 0; source < expert_; ++source) {
          const std::int64_t row_rank = group * expert_ + source;
          auto slots = rows_per_slot(
              layout, layer,
              routing.counts(step, microbatch, layer, layout.whole_experts ? row_rank / layout.tensor : row_rank));
          if (layout.whole_experts)  // each tensor rank of a data rank has its share of the tokens
            for (double& rows : slots) rows /= static_cast<double>(layout.tensor);
          received.resize(slots.size());
          for (std::size_t slot = 0; slot < slots.size(); ++slot) {
            sends[static_cast<std::size_t>(source) * n + slot / (slots.size() / n)] += slots[slot];
            received[slot] += slots[slot];
          }
        }
        const std::size_t each = received.size() / n;
        for (std::size_t k = 0; k < n; ++k) {
          const auto own = std::span(received).subspan(k * each, each);
          rows_.push_back(std::accumulate(own.begin(), own.end(), 0.0));
        }
        sends_.push_back(std::move(sends));
        slots_.push_back(std::move(received));
      }
  }
}

std::size_t RoutingTable::at(int microbatch, int layer, std::int64_t rank) const {
  const auto group = std::ranges::lower_bound(groups_, layout_.row_rank(rank) / expert_) - groups_.begin();
  const int kept = !alike_ ? microbatch : microbatch < last_ ? 0 : std::min(last_, 1);
  return static_cast<std::size_t>((kept * layers_ + layer)) * groups_.size() + static_cast<std::size_t>(group);
}

double RoutingTable::rows(int microbatch, int layer, std::int64_t rank) const {
  if (expert_ == 1 || microbatch < 0 || layer < 0) return 0;
  return rows_[at(microbatch, layer, rank) * static_cast<std::size_t>(expert_) +
               static_cast<std::size_t>(layout_.row_rank(rank) % expert_)];
}

std::span<const double> RoutingTable::by_expert(int microbatch, int layer, std::int64_t rank) const {
  if (microbatch < 0 || layer < 0) return {};
  const std::vector<double>& slots = slots_[at(microbatch, layer, rank)];
  const std::size_t each = slots.size() / static_cast<std::size_t>(expert_);
  return std::span(slots).subspan(static_cast<std::size_t>(layout_.row_rank(rank) % expert_) * each, each);
}

const std::vector<double>& RoutingTable::sends(int microbatch, int layer, std::int64_t rank) const {
  return sends_[at(microbatch, layer, rank)];
}

}  // namespace wt
