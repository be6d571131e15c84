#include "sim/replay/price_cache.hpp"

namespace wt {

SegmentPrice& PriceCache::segment(const Op& op, const BoundRows& rows) {
  auto& prices = segments_[&op];
  auto found = prices.find(rows);
  if (found == prices.end())
    found = prices
                .emplace(Rows{rows.sum, {rows.by_expert.begin(), rows.by_expert.end()}},
                         SegmentPrice{cost_.segment(op, rows)})
                .first;
  return found->second;
}

const CollectivePrice& PriceCache::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) {
  const auto [it, fresh] = collectives_.try_emplace({kind, bytes, ranks, nodes});
  if (fresh) it->second = cost_.collective(kind, bytes, ranks, nodes);
  return it->second;
}

}  // namespace wt
