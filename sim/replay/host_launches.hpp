// Delays by a host that issues ops more slowly than the GPU runs them.
#pragma once
#include <functional>
#include <map>
#include <utility>

#include "sim/cost/ops/op_cost.hpp"
#include "sim/replay/replay_executor.hpp"

namespace wt {

class HostLaunches {
 public:
  /// `alone_s`: seconds of a collective (by index; 0 for -1) that has the cluster to itself.
  HostLaunches(const OpCost& cost, const Layout& layout, std::function<double(int)> alone_s)
      : cost_(cost), layout_(layout), alone_s_(std::move(alone_s)) {}

  /// The host runs ahead within all ops of a layer in one direction. So only the sums count: if launches take longer
  /// than the segments and the collectives that the compute lane waits for, the segments are lengthened by the
  /// difference, in proportion to their launches.
  void add_to(RankTasks& rank);

 private:
  double launch_s(const Op& op);
  /// If exchanges overlap another microbatch, no host waits for them.
  bool awaited(const Op& op) const {
    return op.lane == Lane::compute || (op.exchanges_rows() && !layout_.exchange_overlap);
  }

  const OpCost& cost_;
  const Layout& layout_;
  std::function<double(int)> alone_s_;
  std::map<const Op*, double> launches_;  ///< cached seconds
};

}  // namespace wt
