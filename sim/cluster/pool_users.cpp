#include "sim/cluster/pool_users.hpp"

#include <algorithm>

#include "configs/base/hash.hpp"

namespace wt {

void PoolUsers::add_pool(double capacity) { pools_.push_back({capacity, 0, {}}); }

bool PoolUsers::enter(int load, const PoolLoad& amounts) {
  bool meets = false;
  for (std::size_t i = 0; i < amounts.pools.size(); ++i) {
    Pool& pool = pools_[static_cast<std::size_t>(amounts.pools[i])];
    pool.loads ^= splitmix64(static_cast<std::uint64_t>(load));
    pool.uses.insert(std::ranges::upper_bound(pool.uses, load, {}, &Use::load),
                     {load, amounts.amounts[i] / pool.capacity});
    meets = meets || pool.uses.size() > 1;
  }
  return meets;
}

void PoolUsers::leave(int load, const PoolLoad& amounts) {
  for (const int each : amounts.pools) {
    Pool& pool = pools_[static_cast<std::size_t>(each)];
    pool.loads ^= splitmix64(static_cast<std::uint64_t>(load));
    pool.uses.erase(std::ranges::find(pool.uses, load, &Use::load));
  }
}

/// Whether both pools have the same loads, and each load needs at least as large a share of `a` as of `b`.
bool PoolUsers::covers(const Pool& a, const Pool& b) {
  return std::ranges::equal(a.uses, b.uses,
                            [](const Use& x, const Use& y) { return x.load == y.load && x.seconds >= y.seconds; });
}

std::vector<std::size_t> PoolUsers::binding(const PoolLoad& amounts) const {
  order_.clear();
  for (std::size_t i = 0; i < amounts.pools.size(); ++i)
    order_.push_back({pools_[static_cast<std::size_t>(amounts.pools[i])].loads, amounts.pools[i], i});
  std::ranges::sort(order_);
  std::vector<std::size_t> front;
  std::size_t first = 0;  // index in `front`: the first pool with the same loads
  for (std::size_t k = 0; k < order_.size(); ++k) {
    if (k > 0 && order_[k].loads != order_[k - 1].loads) first = front.size();
    add_to_front(front, first, amounts, order_[k].index);
  }
  std::ranges::sort(front);
  return front;
}

void PoolUsers::add_to_front(std::vector<std::size_t>& front, std::size_t first, const PoolLoad& amounts,
                             std::size_t i) const {
  const auto pool = [&](std::size_t k) -> const Pool& { return pools_[static_cast<std::size_t>(amounts.pools[k])]; };
  const auto begin = front.begin() + static_cast<std::ptrdiff_t>(first);
  if (std::any_of(begin, front.end(), [&](std::size_t k) { return covers(pool(k), pool(i)); })) return;
  front.erase(std::remove_if(begin, front.end(), [&](std::size_t k) { return covers(pool(i), pool(k)); }), front.end());
  front.push_back(i);
}

}  // namespace wt
