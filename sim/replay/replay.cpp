#include "sim/replay/replay.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <tuple>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "sim/cluster/child.hpp"
#include "sim/cluster/shared_array.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "sim/replay/bind.hpp"

namespace wt {
namespace {

void execute_in_child(const StepTasks& tasks, std::span<OpTimes> times) {
  run_in_child([&] {
    execute(tasks, times);
    return std::string();
  });
}

/// The times of one rank's ops.
struct RankTimes {
  std::span<const OpTimes> all;
  const OpNumbers& number;
  std::size_t rank;
  template <class Index>
  const OpTimes& operator[](Index op) const {
    return all[number(rank, static_cast<std::size_t>(op))];
  }
};

/// When each rank ended its last op.
std::vector<double> ends_of(std::span<const OpTimes> times, const OpNumbers& numbers, std::size_t ranks) {
  std::vector<double> ends(ranks, 0.0);
  for (const OpNumbers::Group& group : numbers.groups()) {
    const OpTimes* next = times.data() + group.first;
    for (std::size_t i = 0; i < group.program->ops.size(); ++i)
      for (const std::size_t rank : group.ranks) ends[rank] = std::max(ends[rank], next++->done);
  }
  return ends;
}

/// How long a rank's compute lane stood still, and for which collectives.
struct Exposure {
  std::vector<double> waited;  ///< by op
  double total = 0;
};

/// Follows the lane's clock. The lane is free at the end of its last op (if the host is the lane: not before it issued
/// the last asynchronous op). A wait that ends later blocks the lane until then.
Exposure expose(const RankProgram& program, const RankTimes& times, bool synchronous_host) {
  Exposure e;
  e.waited.assign(static_cast<std::size_t>(program.size()), 0.0);
  double free = 0;
  const auto wait_for = [&](int w) {
    const double done = times[w].done;
    if (done <= free) return;
    if (program.collective(w)) {
      e.waited[static_cast<std::size_t>(w)] += done - free;
      e.total += done - free;
    }
    free = done;
  };
  for (int i = 0; i < program.size(); ++i) {
    const OpInstance& instance = program.ops[static_cast<std::size_t>(i)];
    if (!synchronous_host && instance.op->lane != Lane::compute) continue;
    for (int w : instance.waits) wait_for(w);
    if (program.on_host(i) && program.collective(i)) wait_for(i);  // a collective of a tensor group
    free = std::max(free, program.on_host(i) ? times[i].done : times[i].issued);
  }
  for (int i = 0; i < program.size(); ++i) wait_for(i);
  return e;
}

StepTimeline timeline(const BoundStep& bound, const RankTimes& times, const Exposure& exposure, double end_s,
                      std::int64_t step) {
  const std::size_t r = times.rank;
  const RankProgram& program = *bound.tasks.ranks[r].program;
  StepTimeline out;
  out.step = step;
  out.rank = bound.ranks[r];
  out.step_s = end_s;
  out.exposed_s = exposure.total;
  const MemoryReplay memory = replay_memory(*program.source, [&](int microbatch, int layer) {
    return bound.routing->rows(microbatch, layer, bound.ranks[r]);
  });
  out.peak_bytes = memory.peak_bytes;
  out.ops.resize(static_cast<std::size_t>(program.size()));
  for (std::size_t i = 0; i < out.ops.size(); ++i) {
    OpRecord& record = out.ops[i];
    record.id = program.ops[i].id();
    record.lane = program.ops[i].op->lane;
    record.issued_s = times[i].issued;
    record.done_s = times[i].done;
    record.waited_s = exposure.waited[i];
    record.rows = bound.rows(r, i);
    record.live_bytes = memory.live_bytes[i];
    record.peak_bytes = memory.peak_bytes_of[i];
  }
  return out;
}

/// Sums over the critical rank by class of op, lane and evidence, and the step's interval.
void summarize(const BoundStep& bound, const RankTimes& times, const Exposure& exposure, ReplayResult& result) {
  const std::size_t r = times.rank;
  const RankProgram& program = *bound.tasks.ranks[r].program;
  std::map<std::tuple<Action, Direction, Group>, std::size_t> classes;
  double explained = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = *program.ops[i].op;
    const OpEvidence& evidence = bound.evidence(r, i);
    const double busy = times[i].done - times[i].started;
    const auto [it, fresh] = classes.try_emplace({op.action, op.direction, op.group}, result.totals.size());
    if (fresh) result.totals.push_back({op.action, op.direction, op.group, op.lane});
    OpClassTotal& total = result.totals[it->second];
    if (op.asynchronous()) total.lane = op.lane;  // an op of this class without data to move may have the host's lane
    ++total.count;
    if (evidence.algorithm) total.algorithm = evidence.algorithm;
    total.busy_s += busy;
    total.exposed_s += exposure.waited[i];
    const bool stood_still = op.asynchronous() || op.collective_kind();
    result.lane_busy_s[static_cast<std::size_t>(stood_still && op.lane == Lane::compute ? Lane::tensor : op.lane)] +=
        busy;
    // Time on the critical rank is its compute lane's work plus its standstill. Part of the work's time is the slowdown
    // by communication in flight.
    const CommunicationSlowdown& slowdown = bound.slowdown;
    const bool slowed = !stood_still && slowdown.share > 0;
    const double taken = slowed ? std::max(0.0, busy - bound.tasks.ranks[r].seconds[i]) : 0;
    const double share = stood_still ? exposure.waited[i] : busy - taken;
    for (std::size_t k = 0; k < evidence.shares.size(); ++k) result.evidence_s[k] += share * evidence.shares[k];
    result.low_s += share * evidence.low;
    result.high_s += share * evidence.high;
    if (slowed) {
      result.slowed_s += taken;
      result.evidence_s[static_cast<std::size_t>(slowdown.evidence)] += taken;
      result.low_s += taken * slowdown.low / slowdown.share;
      result.high_s += taken * slowdown.high / slowdown.share;
    }
    explained += share + taken;
  }
  const double rest = std::max(0.0, result.step_s - explained);  // standstill for a copy on another lane
  result.low_s += rest;
  result.high_s += rest;
  if (explained > 0)  // time of waiting for other ranks gets the evidence of the rest of the step
    for (double& seconds : result.evidence_s) seconds *= 1 + rest / explained;
  else
    result.evidence_s[static_cast<std::size_t>(Evidence::derived)] = rest;
}

std::uint64_t digest_of(std::span<const OpTimes> times) {
  static_assert(sizeof(OpTimes) == 3 * sizeof(double), "padding would be hashed");
  return hash_of(times);
}

void vary(BoundStep& bound, double deviation, std::int64_t step) {
  if (deviation <= 0) return;
  for (std::size_t r = 0; r < bound.tasks.ranks.size(); ++r) {
    std::seed_seq seed{step, bound.ranks[r]};
    std::mt19937_64 random(seed);
    for (double& seconds : bound.tasks.ranks[r].seconds) {
      double normal = -6;  // sum of twelve uniform numbers: the same on every machine, within 6 standard deviations
      for (int i = 0; i < 12; ++i) normal += static_cast<double>(random() >> 11) * 0x1p-53;
      seconds *= std::max(0.0, 1 + deviation * normal);
    }
  }
}

}  // namespace

void check_same_machine(const ClusterSpec& cluster, const OpCost& cost) {
  if (cost.traits().synchronous_host == cluster.shared_cores()) return;
  if (cost.traits().synchronous_host)
    throw_usage(
        "times: found the machine model of a host whose ranks share cores for cluster {} of GPUs, allowed is one of "
        "that GPU; use published times of that GPU: --stack torchtitan",
        cluster.name);
  throw_usage(
      "times: found the machine model of a GPU for cluster {}, a host whose ranks share cores, allowed is one of that "
      "host; calibrate with profiles of that host (windtunnel bench)",
      cluster.name);
}

ReplayResult replay(const ProgramSet& programs, const Layout& layout, const ModelSpec& model,
                    const ClusterSpec& cluster, const OpCost& cost, const RoutingSource& routing,
                    const ReplayOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  if (options.vary && options.fold)
    throw_usage(
        "replay: found vary with fold, allowed is one of them: ranks that are simulated once for all vary alike, and "
        "none waits");
  layout.check(model, "layout " + layout.name());
  cluster.check_ranks(layout.world(), "layout " + layout.name());
  check_same_machine(cluster, cost);
  std::vector<NodeHealth> health = cluster.degraded;
  health.insert(health.end(), options.health.begin(), options.health.end());
  const Representatives ranks =
      options.fold ? representatives(programs, layout, cluster, routing, options.step, health) : every_rank(layout);
  const auto bound = bind_step({programs, layout, cluster, cost, routing, options.step, options.off_by}, ranks, health);
  if (options.vary) vary(*bound, cost.traits().variation, options.step);
  const OpNumbers numbers(programs_of(bound->tasks));
  SharedArray<OpTimes> shared(numbers.size());
  const std::span<OpTimes> times = shared.values();
  execute_in_child(bound->tasks, times);

  ReplayResult result;
  result.folded = ranks.folded;
  result.uplink_shares = ranks.uplink_shares;
  result.simulated_ranks = static_cast<std::int64_t>(ranks.ranks.size());
  result.work = static_cast<std::int64_t>(numbers.size()) + kOpsOfStart;
  result.digest = digest_of(times);
  const std::vector<double> ends = ends_of(times, numbers, bound->ranks.size());
  const auto times_of = [&](std::size_t r) { return RankTimes{times, numbers, r}; };
  const auto exposure_of = [&](std::size_t r) {
    return expose(*bound->tasks.ranks[r].program, times_of(r), bound->tasks.synchronous_host);
  };
  const std::size_t critical = static_cast<std::size_t>(std::ranges::max_element(ends) - ends.begin());
  for (std::size_t r = 0; options.timelines && r < ends.size(); ++r)
    if (r == critical || !options.critical_alone)
      result.timelines.push_back(timeline(*bound, times_of(r), exposure_of(r), ends[r], options.step));
  result.step_s = ends[critical];
  result.critical_rank = bound->ranks[critical];
  const Exposure exposure = exposure_of(critical);
  result.exposed_s = exposure.total;
  summarize(*bound, times_of(critical), exposure, result);
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace wt
