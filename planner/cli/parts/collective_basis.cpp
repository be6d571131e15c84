#include "planner/cli/parts/collective_basis.hpp"

#include <fmt/core.h>

namespace wt {

std::vector<std::string> collective_basis(const OpCost& times, const ClusterSpec& cluster) {
  std::vector<std::string> basis = times.traits().basis_of_collectives;
  if (basis.empty())
    return {fmt::format("Times of collectives: none in the profiles; published ones over {}.",
                        cluster.transport == "IB" ? "InfiniBand" : cluster.transport)};
  basis.push_back(
      fmt::format("Collectives that a profile measured have their network in them: for them nic.latency and "
                  "nic.transport ({}) of cluster {} change nothing, its bandwidths do.",
                  cluster.transport, cluster.name));
  return basis;
}

}  // namespace wt
