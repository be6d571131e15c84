// What a host that issues ops more slowly than the GPU does them adds to a rank's segments.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "sim/cost/ops/op_cost.hpp"
#include "sim/replay/replay_executor.hpp"

namespace wt {

class HostLaunches {
 public:
  /// `alone_s`: seconds of a collective with nothing beside it, by its number; 0 of -1.
  HostLaunches(const OpCost& cost, const Layout& layout, std::function<double(int)> alone_s)
      : cost_(cost), layout_(layout), alone_s_(std::move(alone_s)) {}

  /// The host runs ahead over all ops of a layer in one direction: what counts is their sum, with the collectives that
  /// the compute lane waits for. Lengthens the segments by what is more, in proportion to their launches.
  void add_to(RankTasks& rank);

 private:
  double launch_s(const Op& op);
  /// Rows that travel beside another microbatch keep no host waiting.
  bool awaited(const Op& op) const {
    return op.lane == Lane::compute || (op.exchanges_rows() && !layout_.exchange_overlap);
  }

  const OpCost& cost_;
  const Layout& layout_;
  std::function<double(int)> alone_s_;
  std::map<const Op*, double> launches_;  ///< seconds, of ops asked for before
};

}  // namespace wt
