#include "sim/cluster/engine.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "sim/cluster/event_queue.hpp"

namespace wt {
namespace sg = simgrid::s4u;

namespace {

// CM02 without cross traffic, factors or TCP window: SimGrid's defaults make an H100 rail look 3-9 % slower and give it
// 13 times the latency. L07 replaces network and CPU models, these settings keep its remains from interfering.
const char* const kArguments[] = {"windtunnel",
                                  "--log=root.thresh:critical",
                                  "--cfg=network/model:CM02",
                                  "--cfg=network/crosstraffic:0",
                                  "--cfg=network/TCP-gamma:1e15",
                                  "--cfg=host/model:ptask_L07"};

// maxmin/precision is 1e-5 absolute, in units/s: CPU seconds are counted in nanoseconds so that it stays relative to
// 1e9.
constexpr double kSmallCapacity = 1e6, kScale = 1e9;

// Ends that rounding alone tells apart: a step of hours has an ulp of 1e-12 s.
constexpr double kSameTime_s = 1e-12;

}  // namespace

struct Engine::Impl {
  explicit Impl(std::function<void(std::int64_t)> callback) : on_event(std::move(callback)) {
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
    double scale = 0;
    std::int64_t token = 0;
    double alone_s = 0, due_s = -1;  ///< while it has its pools to itself: seconds in all, and its end; else due_s < 0
    sg::ExecPtr exec;                ///< while it shares a pool
  };

  static double now() { return sg::Engine::get_clock(); }

  /// SimGrid's clock stops at the next event; it may have been told to stop earlier than an event added before.
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
    std::vector<std::int64_t> batch;
    while (events.next_s() <= now()) {
      events.take(batch);
      for (const std::int64_t event : batch) {
        if (event >= 0)
          on_event(event);
        else
          end_alone(static_cast<std::size_t>(-1 - event));
      }
    }
    arm();
  }

  void start(const PoolLoad& load, double scale, std::int64_t token) {
    const std::size_t slot = take_slot();
    running[slot] = {&load, scale, token, 0, -1, {}};
    if (std::ranges::none_of(load.pools, [this](int pool) { return taken(pool); })) return start_alone(slot);
    for (const int pool : load.pools)
      if (live(alone[at(pool)])) share_on(static_cast<std::size_t>(alone[at(pool)]));
    share(slot, scale);
  }

  /// By a load that shares pools, or by one that has them to itself and does not end right now.
  bool taken(int pool) const { return sharing[at(pool)] > 0 || live(alone[at(pool)]); }
  bool live(int slot) const { return slot >= 0 && running[static_cast<std::size_t>(slot)].due_s > now() + kSameTime_s; }

  /// At the rate that SimGrid would find, without asking it.
  void start_alone(std::size_t slot) {
    Running& r = running[slot];
    double rate = std::numeric_limits<double>::infinity();  // of the whole load, 1/s
    for (std::size_t i = 0; i < r.load->pools.size(); ++i) {
      const std::size_t pool = at(r.load->pools[i]);
      if (const double amount = r.load->amounts[i] * r.scale; amount > 0)
        rate = std::min(rate, capacity[pool] / amount);
      alone[pool] = static_cast<int>(slot);
    }
    r.alone_s = 1 / rate;
    r.due_s = now() + r.alone_s;
    add_event(r.due_s, -1 - static_cast<std::int64_t>(slot));
  }

  /// Nothing for an event of a load that shares its pools since, or of an earlier one in this slot.
  void end_alone(std::size_t slot) {
    Running& r = running[slot];
    if (r.due_s < 0 || r.due_s > now()) return;
    leave_alone(slot);
    end(slot);
  }

  void leave_alone(std::size_t slot) {
    for (const int pool : running[slot].load->pools)
      if (alone[at(pool)] == static_cast<int>(slot)) alone[at(pool)] = -1;
    running[slot].due_s = -1;
  }

  /// What is left of a load that had its pools to itself so far.
  void share_on(std::size_t slot) {
    const double left = (running[slot].due_s - now()) / running[slot].alone_s;
    leave_alone(slot);
    share(slot, running[slot].scale * left);
  }

  void share(std::size_t slot, double scale) {
    bury();
    const PoolLoad& load = *running[slot].load;
    sg::ExecPtr exec = sg::Exec::init();
    std::vector<sg::Host*> on;
    std::vector<double> amounts;
    for (std::size_t i = 0; i < load.pools.size(); ++i) {
      const std::size_t pool = at(load.pools[i]);
      ++sharing[pool];
      on.push_back(hosts[pool]);
      amounts.push_back(load.amounts[i] * scale * scales[pool]);
    }
    if (on.size() == 1) {
      exec->set_flops_amount(amounts[0]);
      exec->set_host(on[0]);
    } else {
      exec->set_flops_amounts(amounts);
      exec->set_hosts(on);
    }
    exec->set_data(reinterpret_cast<void*>(slot));
    running[slot].exec = exec;
    exec->vetoable_start();
  }

  void completed(const sg::Activity& activity) {
    const auto slot = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    // SimGrid still touches the activity after this callback: it is let go once time has moved on.
    ended.emplace_back(now(), std::move(running[slot].exec));
    for (const int pool : running[slot].load->pools) --sharing[at(pool)];
    end(slot);
  }

  void end(std::size_t slot) {
    free_slots.push_back(slot);
    on_event(running[slot].token);
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
  std::vector<std::string> words;
  std::vector<char*> argv;
  int argc = 0;
  std::unique_ptr<sg::Engine> engine;
  sg::NetZone* zone = nullptr;
  EventQueue events;             ///< tokens of delays; below 0 the ends of loads that have their pools to themselves
  std::vector<double> stops;     ///< of SimGrid's clock, the next one last
  std::vector<sg::Host*> hosts;  ///< by pool, as are
  std::vector<double> capacity, scales;
  std::vector<int> alone;    ///< the load that has it to itself, or that has just ended; -1 = none
  std::vector<int> sharing;  ///< how many loads that share pools use it
  std::vector<Running> running;
  std::vector<std::size_t> free_slots;
  std::deque<std::pair<double, sg::ExecPtr>> ended;
};

Engine::Engine(std::function<void(std::int64_t)> on_event) : impl_(std::make_unique<Impl>(std::move(on_event))) {}
Engine::~Engine() = default;

int Engine::add_pool(double capacity, int cores) {
  const double scale = capacity < kSmallCapacity ? kScale : 1.0;
  sg::Host* host = impl_->zone->create_host("p" + std::to_string(impl_->hosts.size()), capacity * scale / cores);
  host->set_core_count(cores);
  impl_->hosts.push_back(host);
  impl_->capacity.push_back(capacity);
  impl_->scales.push_back(scale);
  impl_->alone.push_back(-1);
  impl_->sharing.push_back(cores > 1 ? 1 : 0);  // several cores are SimGrid's, however many loads there are
  return static_cast<int>(impl_->hosts.size()) - 1;
}

void Engine::seal() { impl_->zone->seal(); }

void Engine::delay(double seconds, std::int64_t token) { impl_->add_event(now() + seconds, token); }

void Engine::load(const PoolLoad& load, double scale, std::int64_t token) { impl_->start(load, scale, token); }

double Engine::now() const { return sg::Engine::get_clock(); }
void Engine::run() { impl_->engine->run(); }

}  // namespace wt
