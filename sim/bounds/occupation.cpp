#include "sim/bounds/occupation.hpp"

#include <algorithm>

namespace wt {
namespace {

constexpr auto kCompute = static_cast<std::size_t>(Lane::compute);

/// Least time of the rank's busiest link, at its full rate.
double fullest_link_s(const StepTasks& step, const RankTasks& rank) {
  std::vector<double> carried_s(step.capacity.size(), 0.0);
  for (int c : rank.collective) {
    if (c < 0 || step.collectives[static_cast<std::size_t>(c)].load < 0) continue;
    const CollectiveTask& task = step.collectives[static_cast<std::size_t>(c)];
    const PoolLoad& load = step.loads[static_cast<std::size_t>(task.load)];
    for (std::size_t p = 0; p < load.pools.size(); ++p) {
      const std::size_t pool = static_cast<std::size_t>(load.pools[p]);
      carried_s[pool] += task.scale * load.amounts[p] / step.capacity[pool];
    }
  }
  return carried_s.empty() ? 0 : *std::max_element(carried_s.begin(), carried_s.end());
}

}  // namespace

double fullest_transfers(const LaneSeconds& lane_s) {
  double fullest = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (lane != kCompute && lane != static_cast<std::size_t>(Lane::copy)) fullest = std::max(fullest, lane_s[lane]);
  return fullest;
}

double slowed_step_s(double compute_s, double still_s, double in_flight_s, double slowdown) {
  return compute_s + still_s + slowdown * std::max(0.0, in_flight_s - still_s);
}

Occupation::Occupation(const RankProgram& program, double slowdown) : program_(program), slowdown_(slowdown) {
  if (slowdown > 0) reach_.resize(program.ops.size());
}

void Occupation::add(int op, double seconds) {
  if (slowdown_ <= 0) return;
  const std::size_t at = static_cast<std::size_t>(op);
  const OpInstance& instance = program_.ops[at];
  Reach reach;
  for (int wait : instance.waits) reach = std::max(reach, reach_[static_cast<std::size_t>(wait)]);
  if (instance.op->lane == Lane::compute) {
    if (reach.op == last_) still_s_ += reach.seconds;
    (program_.collective(op) ? still_s_ : lane_s_[kCompute]) += seconds;
    last_ = op;
    reach_[at] = {op, 0};
    return;
  }
  if (const int previous = program_.lane_previous[at]; previous >= 0)
    reach = std::max(reach, reach_[static_cast<std::size_t>(previous)]);
  reach.seconds += seconds;
  reach_[at] = reach;
  lane_s_[static_cast<std::size_t>(instance.op->lane)] += seconds;
}

double Occupation::bound_s(const StepTasks& step, const RankTasks& rank) const {
  if (slowdown_ <= 0) return 0;
  double after_s = 0;  // what depends on the compute lane's last op
  for (const Reach& each : reach_)
    if (each.op == last_) after_s = std::max(after_s, each.seconds);
  return slowed_step_s(lane_s_[kCompute], still_s_ + after_s,
                       std::max(fullest_link_s(step, rank), fullest_transfers(lane_s_)), slowdown_);
}

}  // namespace wt
