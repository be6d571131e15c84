#include "sim/cluster/engine.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "sim/cluster/event_queue.hpp"
#include "sim/cluster/pool_users.hpp"

namespace wt {
namespace sg = simgrid::s4u;

namespace {

// CM02 without cross traffic, factors or TCP window: SimGrid's defaults make an H100 rail look 3-9 % slower, with 13
// times the latency. L07 replaces the network and CPU models; these settings keep remaining parts of CM02 from
// interfering.
const char* const kArguments[] = {"windtunnel",
                                  "--log=root.thresh:critical",
                                  "--cfg=network/model:CM02",
                                  "--cfg=network/crosstraffic:0",
                                  "--cfg=network/TCP-gamma:1e15",
                                  "--cfg=host/model:ptask_L07"};

// maxmin/precision is 1e-5 units/s absolute. CPU seconds are counted in nanoseconds, so that it is relative to 1e9.
constexpr double kSmallCapacity = 1e6, kScale = 1e9;

// Ends this close differ by rounding alone: in a step of hours one ulp is 1e-12 s.
constexpr double kSameTime_s = 1e-12;

}  // namespace

struct Engine::Impl {
  Impl(std::function<void(std::int64_t)> callback, Solver for_loads)
      : on_event(std::move(callback)), solver(for_loads) {
    for (const char* argument : kArguments) words.emplace_back(argument);
    for (std::string& word : words) argv.push_back(word.data());
    argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    engine = std::make_unique<sg::Engine>(&argc, argv.data());
    zone = sg::create_empty_zone("cluster");
    sg::Activity::on_completion_cb([this](const sg::Activity& activity) { completed(activity); });
  }

  /// A load in progress.
  struct Running {
    const PoolLoad* load = nullptr;
    double scale = 0;  ///< share of the load that was left when it last changed between alone and shared
    std::int64_t token = 0;
    double alone_s = 0, due_s = -1;   ///< while alone: duration and end; due_s < 0 while it shares
    sg::ExecPtr exec;                 ///< while it shares pools
    std::vector<std::size_t> listed;  ///< indices of its pools that are in SimGrid's activity
    bool to_share = false;            ///< it is in `marked`
  };

  static double now() { return sg::Engine::get_clock(); }

  /// SimGrid's clock stops at the next event. An earlier stop may be pending from events added before.
  void add_event(double time_s, std::int64_t event) {
    events.add(time_s, event);
    arm();
  }
  void arm() {
    const double next_s = events.next_s();
    if (events.empty() || (!stops.empty() && stops.back() <= next_s)) return;
    stops.push_back(next_s);
    simgrid::kernel::timer::Timer::set(next_s, [this] { stopped(); });
  }
  void stopped() {
    stops.pop_back();
    while (events.next_s() <= now()) {
      events.take(batch);
      for (const std::int64_t event : batch) {
        if (event >= 0)
          on_event(event);
        else
          end_alone(static_cast<std::size_t>(-1 - event));
      }
      settle();
    }
    arm();
  }

  /// The load runs from now on. Its sharing is settled once all loads that start now are known.
  void start(const PoolLoad& load, double scale, std::int64_t token) {
    const std::size_t slot = take_slot();
    running[slot] = {&load, scale, token, 0, -1, {}, {}, false};
    const bool meets = users.enter(static_cast<int>(slot), load);
    fresh.emplace_back(slot, meets);
  }

  /// Decides for the loads that started now: alone, or shared with those they meet.
  void settle() {
    for (const auto& [slot, meets] : fresh)
      if (solver == Solver::always || (meets && ask_to_share(slot)) || several_cores(*running[slot].load))
        mark(slot);
      else
        start_alone(slot);
    fresh.clear();
    for (const std::size_t slot : marked) share(slot);
    marked.clear();
  }
  /// Whether the load meets another one; marks those that it meets. A load that ends right now does not count.
  bool ask_to_share(std::size_t slot) {
    bool any = false;
    users.each_other(static_cast<int>(slot), *running[slot].load, [&](int other) {
      const double due_s = running[static_cast<std::size_t>(other)].due_s;
      if (due_s >= 0 && due_s <= now() + kSameTime_s) return;
      any = true;
      mark(static_cast<std::size_t>(other));
    });
    return any;
  }
  /// SimGrid always solves pools with several cores.
  bool several_cores(const PoolLoad& load) const {
    return std::ranges::any_of(load.pools, [this](int pool) { return cores[at(pool)] > 1; });
  }
  void mark(std::size_t slot) {
    if (!std::exchange(running[slot].to_share, true)) marked.push_back(slot);
  }

  /// Runs a load alone, at the rate that SimGrid would find.
  void start_alone(std::size_t slot) {
    Running& r = running[slot];
    double rate = std::numeric_limits<double>::infinity();  // of the whole load, 1/s
    for (std::size_t i = 0; i < r.load->pools.size(); ++i)
      if (const double amount = r.load->amounts[i] * r.scale; amount > 0)
        rate = std::min(rate, capacity[at(r.load->pools[i])] / amount);
    r.alone_s = 1 / rate;
    r.due_s = now() + r.alone_s;
    add_event(r.due_s, -1 - static_cast<std::int64_t>(slot));
  }

  /// Ignores stale events: the load has shared pools since, or the slot had an earlier load.
  void end_alone(std::size_t slot) {
    if (running[slot].due_s >= 0 && running[slot].due_s <= now()) end(slot);
  }

  /// Hands SimGrid the rest of a load, unless SimGrid already has it with all pools that can limit it.
  void share(std::size_t slot) {
    Running& r = running[slot];
    r.to_share = false;
    std::vector<std::size_t> pools = solver == Solver::always ? all_of(*r.load) : users.binding(*r.load);
    if (r.exec && std::ranges::includes(r.listed, pools)) return;
    if (r.exec) {
      const double left = r.exec->get_remaining_ratio();
      if (left <= 0) return;  // it ends now
      // Pools that SimGrid has stay in the activity, because other loads rely on them.
      std::vector<std::size_t> both;
      std::ranges::set_union(r.listed, pools, std::back_inserter(both));
      pools = std::move(both);
      r.scale *= left;
      withdraw(r);
    } else if (r.due_s >= 0) {
      r.scale *= (r.due_s - now()) / r.alone_s;
      r.due_s = -1;
    }
    r.listed = std::move(pools);
    hand_over(slot);
  }

  void withdraw(Running& r) {
    r.exec->set_data(nullptr);
    bury();
    ended.emplace_back(now(), r.exec);
    r.exec->cancel();
  }

  void hand_over(std::size_t slot) {
    Running& r = running[slot];
    std::vector<sg::Host*> on;
    std::vector<double> amounts;
    for (const std::size_t i : r.listed) {
      const std::size_t pool = at(r.load->pools[i]);
      on.push_back(hosts[pool]);
      amounts.push_back(r.load->amounts[i] * r.scale * scales[pool]);
    }
    r.exec = sg::Exec::init();
    if (on.size() == 1) {
      r.exec->set_flops_amount(amounts[0]);
      r.exec->set_host(on[0]);
    } else {
      r.exec->set_flops_amounts(amounts);
      r.exec->set_hosts(on);
    }
    r.exec->set_data(reinterpret_cast<void*>(slot + 1));
    r.exec->vetoable_start();
  }

  void completed(const sg::Activity& activity) {
    const auto number = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    if (number == 0) return;  // withdrawn
    // SimGrid still touches the activity after this callback, so it is released once time has moved on.
    bury();
    ended.emplace_back(now(), std::move(running[number - 1].exec));
    end(number - 1);
    if (!fresh.empty() && !std::exchange(settles, true))
      simgrid::kernel::timer::Timer::set(now(), [this] {
        settles = false;
        settle();
      });
  }

  void end(std::size_t slot) {
    users.leave(static_cast<int>(slot), *running[slot].load);
    running[slot].due_s = -1;
    free_slots.push_back(slot);
    on_event(running[slot].token);
  }

  static std::vector<std::size_t> all_of(const PoolLoad& load) {
    std::vector<std::size_t> all(load.pools.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  std::size_t take_slot() {
    if (free_slots.empty()) return running.emplace_back(), running.size() - 1;
    const std::size_t slot = free_slots.back();
    free_slots.pop_back();
    return slot;
  }

  void bury() {
    while (!ended.empty() && ended.front().first < now()) ended.pop_front();
  }

  static std::size_t at(int pool) { return static_cast<std::size_t>(pool); }

  std::function<void(std::int64_t)> on_event;
  Solver solver;
  std::vector<std::string> words;
  std::vector<char*> argv;
  int argc = 0;
  std::unique_ptr<sg::Engine> engine;
  sg::NetZone* zone = nullptr;
  EventQueue events;             ///< tokens of delays; numbers below 0 are ends of loads that run alone
  std::vector<double> stops;     ///< pending stops of SimGrid's clock, the next one last
  std::vector<sg::Host*> hosts;  ///< by pool, as the next three
  std::vector<double> capacity, scales;
  std::vector<int> cores;
  PoolUsers users;
  std::vector<std::int64_t> batch;                  ///< events of the current time
  std::vector<std::pair<std::size_t, bool>> fresh;  ///< loads that started now, and whether they met another
  std::vector<std::size_t> marked;                  ///< loads to share
  bool settles = false;                             ///< SimGrid will call settle() before its clock advances
  std::vector<Running> running;
  std::vector<std::size_t> free_slots;
  std::deque<std::pair<double, sg::ExecPtr>> ended;
};

Engine::Engine(std::function<void(std::int64_t)> on_event, Solver solver)
    : impl_(std::make_unique<Impl>(std::move(on_event), solver)) {}
Engine::~Engine() = default;

int Engine::add_pool(double capacity, int cores) {
  const double scale = capacity < kSmallCapacity ? kScale : 1.0;
  sg::Host* host = impl_->zone->create_host("p" + std::to_string(impl_->hosts.size()), capacity * scale / cores);
  host->set_core_count(cores);
  impl_->hosts.push_back(host);
  impl_->capacity.push_back(capacity);
  impl_->scales.push_back(scale);
  impl_->cores.push_back(cores);
  impl_->users.add_pool(capacity);
  return static_cast<int>(impl_->hosts.size()) - 1;
}

void Engine::seal() { impl_->zone->seal(); }

void Engine::delay(double seconds, std::int64_t token) { impl_->add_event(now() + seconds, token); }

void Engine::load(const PoolLoad& load, double scale, std::int64_t token) { impl_->start(load, scale, token); }

double Engine::now() const { return sg::Engine::get_clock(); }
void Engine::run() {
  impl_->settle();
  impl_->engine->run();
}

}  // namespace wt
