// Which loads are on which pools, and which pools of a load can hold it up.
//
// Of pools with the same loads, one whose every load takes a smaller share of the capacity is never the first to run
// out, however the capacity is shared out fairly: rates are the same without it. Of the 256 pools of a gather over
// eight nodes beside an exchange inside each node, eight or so are left.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/cluster/pool_load.hpp"

namespace wt {

class PoolUsers {
 public:
  void add_pool(double capacity);
  /// `load` is a number that no other has at the same time.
  /// Whether it meets another load on some pool.
  bool enter(int load, const PoolLoad& amounts);
  void leave(int load, const PoolLoad& amounts);
  /// visit(load) for each other load on each of the pools; for one on several of them several times.
  template <class Visit>
  void each_other(int load, const PoolLoad& amounts, const Visit& visit) const {
    for (const int pool : amounts.pools)
      for (const Use& use : pools_[static_cast<std::size_t>(pool)].uses)
        if (use.load != load) visit(use.load);
  }
  /// The pools that matter, as ascending indices into `amounts`: each of the others has the same loads as one of these,
  /// and of each of them no larger a share. Of pools that are alike all their loads name the same one.
  std::vector<std::size_t> binding(const PoolLoad& amounts) const;

 private:
  struct Use {
    int load;
    double seconds;  ///< of the whole load, with the pool to itself
  };
  struct Pool {
    double capacity;
    std::uint64_t loads = 0;  ///< a hash of which loads use it
    std::vector<Use> uses;    ///< by load, ascending
  };

  /// A pool of a load.
  struct Place {
    std::uint64_t loads;  ///< Pool::loads
    int pool;
    std::size_t index;  ///< in the load
    auto operator<=>(const Place&) const = default;
  };

  static bool covers(const Pool& a, const Pool& b);
  void add_to_front(std::vector<std::size_t>& front, std::size_t first, const PoolLoad& amounts, std::size_t i) const;

  std::vector<Pool> pools_;
  mutable std::vector<Place> order_;  ///< of the pools that binding() looks at
};

}  // namespace wt
