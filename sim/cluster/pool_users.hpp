// Which loads use which pools, and which pools of a load can limit its rate.
//
// Of two pools with the same loads, the one on which every load needs a smaller share of the capacity never limits a
// fair sharing, so rates are the same without it. A gather over eight nodes, concurrent with an exchange inside each
// node, has 256 pools; about eight remain.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/cluster/pool_load.hpp"

namespace wt {

class PoolUsers {
 public:
  void add_pool(double capacity);
  /// `load` is a number that no other current load has. Returns whether the load shares a pool with another.
  bool enter(int load, const PoolLoad& amounts);
  void leave(int load, const PoolLoad& amounts);
  /// Calls visit(load) for each other load on each of the pools: several times for a load on several of them.
  template <class Visit>
  void each_other(int load, const PoolLoad& amounts, const Visit& visit) const {
    for (const int pool : amounts.pools)
      for (const Use& use : pools_[static_cast<std::size_t>(pool)].uses)
        if (use.load != load) visit(use.load);
  }
  /// The pools that can limit the load, as ascending indices into `amounts`. Every other pool has the same loads as one
  /// of these, none with a larger share. Among equal pools, all their loads get the same one.
  std::vector<std::size_t> binding(const PoolLoad& amounts) const;

 private:
  struct Use {
    int load;
    double seconds;  ///< of the whole load, if it has the pool to itself
  };
  struct Pool {
    double capacity;
    std::uint64_t loads = 0;  ///< a hash of the loads that use it
    std::vector<Use> uses;    ///< by load, ascending
  };

  struct Place {
    std::uint64_t loads;  ///< Pool::loads
    int pool;
    std::size_t index;  ///< in the load's pools
    auto operator<=>(const Place&) const = default;
  };

  static bool covers(const Pool& a, const Pool& b);
  void add_to_front(std::vector<std::size_t>& front, std::size_t first, const PoolLoad& amounts, std::size_t i) const;

  std::vector<Pool> pools_;
  mutable std::vector<Place> order_;  ///< of the pools that binding() looks at
};

}  // namespace wt
