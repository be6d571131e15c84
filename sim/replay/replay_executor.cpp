#include "sim/replay/replay_executor.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {
namespace {

class Executor {
 public:
  Executor(const StepTasks& tasks, std::span<OpTimes> times)
      : tasks_(tasks),
        engine_([this](std::int64_t token) { on_event(token); }),
        number_(programs_of(tasks)),
        times_(times) {
    for (std::size_t p = 0; p < tasks.capacity.size(); ++p) engine_.add_pool(tasks.capacity[p], tasks.cores[p]);
    engine_.seal();
    std::ranges::fill(times_, OpTimes{-1, -1, -1});
    pending_.resize(number_.size());
    for (const OpNumbers::Group& group : number_.groups()) {
      auto at = pending_.begin() + static_cast<std::ptrdiff_t>(group.first);
      for (const int depends : group.program->depends) at = std::fill_n(at, group.ranks.size(), depends);
    }
    if (tasks.synchronous_host) entered_.assign(number_.size(), 0);
    joined_.assign(tasks.collectives.size(), 0);
    parts_.assign(tasks.collectives.size(), 0);
    position_.assign(tasks.ranks.size(), 0);
    next_wait_.assign(tasks.ranks.size(), 0);
    in_flight_.assign(tasks.ranks.size(), 0);
    computing_.resize(tasks.ranks.size());
  }

  void run() {
    for (std::size_t r = 0; r < tasks_.ranks.size(); ++r) {
      const int rank = static_cast<int>(r);
      if (tasks_.synchronous_host) {
        advance(rank);
      } else {
        for (int i = 0; i < tasks_.ranks[r].program->size(); ++i)
          if (tasks_.ranks[r].program->depends[static_cast<std::size_t>(i)] == 0) issue(rank, i);
      }
    }
    engine_.run();
    check();
  }

 private:
  /// An op in progress on a GPU, and its end at the current rate.
  struct Computing {
    int op;
    double due;
  };

  /// Ops in progress on a rank's GPU: at most one per lane.
  struct Busy {
    std::size_t count = 0;
    std::array<Computing, kLanes> ops;
  };

  // Tokens: a rank and its op, while the op computes; or a collective, and whether its load or its latency has ended.
  static constexpr std::int64_t kCollective = std::int64_t{1} << 62;
  static std::int64_t op_token(int rank, int i) { return (static_cast<std::int64_t>(rank) << 32) | i; }
  static std::int64_t collective_token(int c, int part) {
    return kCollective | (2 * static_cast<std::int64_t>(c) + part);
  }
  std::size_t number(int rank, int i) const {
    return number_(static_cast<std::size_t>(rank), static_cast<std::size_t>(i));
  }
  OpTimes& times(int rank, int i) { return times_[number(rank, i)]; }
  const RankProgram& program(int rank) const { return *tasks_.ranks[static_cast<std::size_t>(rank)].program; }
  int collective_of(int rank, int i) const {
    return tasks_.ranks[static_cast<std::size_t>(rank)].collective[static_cast<std::size_t>(i)];
  }

  void on_event(std::int64_t token) {
    if (token < kCollective) {
      const int rank = static_cast<int>(token >> 32), i = static_cast<int>(token & 0xffffffff);
      if (tasks_.compute_on_pool || computed(rank, i)) finish(rank, i);
      return;
    }
    const std::int64_t part = token ^ kCollective;
    const int c = static_cast<int>(part / 2);
    if (part % 2 == 0)
      transfer(c);
    else if (--parts_[static_cast<std::size_t>(c)] == 0)
      finish_collective(c);
  }

  /// Called when the op's dependencies are done.
  void issue(int rank, int i) {
    times(rank, i).issued = engine_.now();
    if (program(rank).collective(i))
      join(rank, i);
    else
      compute(rank, i);
  }

  void compute(int rank, int i) {
    times(rank, i).started = engine_.now();
    const double seconds = tasks_.ranks[static_cast<std::size_t>(rank)].seconds[static_cast<std::size_t>(i)];
    if (seconds <= 0)
      finish(rank, i);
    else if (tasks_.compute_on_pool)
      engine_.load(kOneCore, seconds, op_token(rank, i));
    else
      start_computing(rank, i, seconds);
  }

  void start_computing(int rank, int i, double seconds) {
    Busy& busy = computing_[static_cast<std::size_t>(rank)];
    Computing& computing = busy.ops[busy.count++];
    computing.op = i;
    end_at(rank, computing, seconds / rate(rank));
  }

  /// Rate of a GPU's computation. Several collectives in flight slow it no more than one: they share the same links,
  /// and the published share is a mean over steps in which they also overlapped.
  double rate(int rank) const { return in_flight_[static_cast<std::size_t>(rank)] > 0 ? 1 - tasks_.slowdown : 1; }

  void end_at(int rank, Computing& computing, double seconds) {
    computing.due = engine_.now() + seconds;
    engine_.delay(seconds, op_token(rank, computing.op));
  }

  /// False for a stale event: the op's end has changed since.
  bool computed(int rank, int i) {
    Busy& busy = computing_[static_cast<std::size_t>(rank)];
    const auto end = busy.ops.begin() + static_cast<std::ptrdiff_t>(busy.count);
    const auto found = std::find_if(busy.ops.begin(), end, [i](const Computing& c) { return c.op == i; });
    if (found == end || engine_.now() < found->due) return false;
    *found = busy.ops[--busy.count];
    return true;
  }

  /// A collective of GPUs is in flight once all members have issued it, latency included, because its kernels then
  /// occupy multiprocessors. Kernels that wait for other members do not count: receives posted long before their
  /// message occupy only one or two.
  void fly(const CollectiveTask& task, int change) {
    if (tasks_.slowdown <= 0 || (task.latency_s <= 0 && (task.load < 0 || task.scale <= 0))) return;
    for (const auto& [rank, op] : task.members) {
      const double before = rate(rank);
      in_flight_[static_cast<std::size_t>(rank)] += change;
      const double after = rate(rank);
      if (before == after) continue;
      Busy& busy = computing_[static_cast<std::size_t>(rank)];
      for (Computing& each : std::span(busy.ops).first(busy.count))
        if (const double left = each.due - engine_.now(); left > 0) end_at(rank, each, left * before / after);
    }
  }

  void join(int rank, int i) {
    const int c = collective_of(rank, i);
    const CollectiveTask& task = tasks_.collectives[static_cast<std::size_t>(c)];
    if (++joined_[static_cast<std::size_t>(c)] < static_cast<int>(task.members.size())) return;
    for (const auto& [member, op] : task.members) times(member, op).started = engine_.now();
    fly(task, +1);
    if (task.latency_s > 0)
      engine_.delay(task.latency_s, collective_token(c, 0));
    else
      transfer(c);
  }

  void transfer(int c) {
    const CollectiveTask& task = tasks_.collectives[static_cast<std::size_t>(c)];
    int& parts = parts_[static_cast<std::size_t>(c)];
    if (task.load >= 0 && task.scale > 0) ++parts;
    for (double cpu : task.cpu_s) parts += cpu > 0;
    if (parts == 0) return finish_collective(c);
    if (task.load >= 0 && task.scale > 0)
      engine_.load(tasks_.loads[static_cast<std::size_t>(task.load)], task.scale, collective_token(c, 1));
    for (double cpu : task.cpu_s)
      if (cpu > 0) engine_.load(kOneCore, cpu, collective_token(c, 1));
  }

  void finish_collective(int c) {
    const auto& members = tasks_.collectives[static_cast<std::size_t>(c)].members;
    fly(tasks_.collectives[static_cast<std::size_t>(c)], -1);
    for (const auto& [rank, i] : members)
      times(rank, i).done = engine_.now();  // set all times before finish() starts dependents
    for (const auto& [rank, i] : members) finish(rank, i);
  }

  void finish(int rank, int i) {
    times(rank, i).done = engine_.now();
    const RankProgram& p = program(rank);
    if (!tasks_.synchronous_host) {
      for (int d = p.dependent_first[static_cast<std::size_t>(i)];
           d < p.dependent_first[static_cast<std::size_t>(i) + 1]; ++d) {
        const int after = p.dependent[static_cast<std::size_t>(d)];
        if (--pending_[number(rank, after)] == 0) issue(rank, after);
      }
      return;
    }
    const int next = p.lane_next[static_cast<std::size_t>(i)];
    if (next >= 0 && !p.on_host(next) && times(rank, next).issued >= 0) start_asynchronous(rank, next);
    if (position_[static_cast<std::size_t>(rank)] == i && p.on_host(i)) ++position_[static_cast<std::size_t>(rank)];
    advance(rank);
  }

  /// Advances the synchronous host in issue order until it computes, waits, or has issued everything.
  void advance(int rank) {
    const RankProgram& p = program(rank);
    int& position = position_[static_cast<std::size_t>(rank)];
    std::size_t& next_wait = next_wait_[static_cast<std::size_t>(rank)];
    while (position < p.size()) {
      const int i = position;
      if (times(rank, i).issued >= 0) return;  // in progress
      const std::vector<int>& waits = p.ops[static_cast<std::size_t>(i)].waits;
      while (next_wait < waits.size() && times(rank, waits[next_wait]).done >= 0) ++next_wait;
      if (next_wait < waits.size()) return;
      next_wait = 0;
      times(rank, i).issued = engine_.now();
      if (p.on_host(i)) {
        if (p.collective(i))
          join(rank, i);
        else
          compute(rank, i);
        return;  // finish() continues
      }
      ++position;
      start_asynchronous(rank, i);
    }
  }

  void start_asynchronous(int rank, int i) {
    const int previous = program(rank).lane_previous[static_cast<std::size_t>(i)];
    if (previous >= 0 && times(rank, previous).done < 0) return;  // finish() of the lane's previous op calls this again
    if (std::exchange(entered_[number(rank, i)], char{1})) return;
    if (program(rank).collective(i))
      join(rank, i);
    else
      compute(rank, i);
  }

  void check() const {
    if (std::ranges::none_of(times_, [](const OpTimes& op) { return op.done < 0; })) return;
    for (std::size_t r = 0; r < tasks_.ranks.size(); ++r)
      for (std::size_t i = 0; i < tasks_.ranks[r].program->ops.size(); ++i)
        if (times_[number_(r, i)].done < 0) stands_still(r, tasks_.ranks[r].program->ops[i]);
  }

  [[noreturn]] static void stands_still(std::size_t rank, const OpInstance& op) {
    throw_runtime(
        "simulation: simulated rank {} stands still before {} ({}), as if ranks called their collectives in different "
        "orders; this is a mistake of windtunnel, not of your files; report it with them",
        rank, op.id(), to_string(op.op->kind));
  }

  const PoolLoad kOneCore{{0}, {1.0}};
  const StepTasks& tasks_;
  Engine engine_;
  const OpNumbers number_;
  std::span<OpTimes> times_;         ///< by op number
  std::vector<int> pending_;         ///< by op number: dependencies that are not done
  std::vector<char> entered_;        ///< by op number, for synchronous hosts: the asynchronous op has started
  std::vector<int> joined_, parts_;  ///< by collective: members that joined, loads in progress
  std::vector<int> position_;        ///< synchronous hosts: the next op to issue, or the one in progress
  std::vector<std::size_t> next_wait_;
  std::vector<int> in_flight_;   ///< collectives in flight, by rank
  std::vector<Busy> computing_;  ///< by rank
};

}  // namespace

OpNumbers::OpNumbers(const std::vector<const RankProgram*>& programs)
    : first_(programs.size()), stride_(programs.size()) {
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    auto group = std::ranges::find(groups_, programs[rank], &Group::program);
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {programs[rank], 0, {}});
    group->ranks.push_back(rank);
  }
  for (Group& group : groups_) {
    group.first = size_;
    for (std::size_t k = 0; k < group.ranks.size(); ++k) {
      first_[group.ranks[k]] = group.first + k;
      stride_[group.ranks[k]] = group.ranks.size();
    }
    size_ += group.ranks.size() * group.program->ops.size();
  }
}

std::vector<const RankProgram*> programs_of(const StepTasks& tasks) {
  std::vector<const RankProgram*> programs;
  for (const RankTasks& rank : tasks.ranks) programs.push_back(rank.program);
  return programs;
}

void execute(const StepTasks& tasks, std::span<OpTimes> times) { Executor(tasks, times).run(); }

}  // namespace wt
