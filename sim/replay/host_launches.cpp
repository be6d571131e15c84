#include "sim/replay/host_launches.hpp"

#include <tuple>
#include <vector>

namespace wt {

double HostLaunches::launch_s(const Op& op) {
  const auto [found, fresh] = launches_.try_emplace(&op, 0.0);
  if (fresh) found->second = cost_.launch_s(op, layout_);
  return found->second;
}

void HostLaunches::add_to(RankTasks& rank) {
  struct Sum {
    double gpu_s = 0, launch_s = 0, segments_s = 0;  ///< segments_s: the segments' part of launch_s
    std::vector<std::pair<std::size_t, double>> segments;
  };
  std::map<std::tuple<int, int, bool>, Sum> layers;  // key: microbatch, layer, forward
  const RankProgram& program = *rank.program;
  for (int i = 0; i < program.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    const OpInstance& instance = program.ops[at];
    const Op& op = *instance.op;
    const bool segment = op.kind == OpKind::segment;
    if (instance.layer < 0 || !(segment || (op.collective_kind() && awaited(op)))) continue;
    Sum& sum = layers[{instance.microbatch, instance.layer, op.direction == Direction::forward}];
    const double launch = launch_s(op);
    sum.launch_s += launch;
    sum.gpu_s += segment ? rank.seconds[at] : alone_s_(rank.collective[at]);
    if (segment && launch > 0) sum.segments.emplace_back(at, launch), sum.segments_s += launch;
  }
  for (const auto& [key, sum] : layers) {
    const double more = cost_.issued_s(sum.gpu_s, sum.launch_s) - sum.gpu_s;
    for (const auto& [at, launch_s] : sum.segments) rank.seconds[at] += more * launch_s / sum.segments_s;
  }
}

}  // namespace wt
