#include "sim/cluster/engine.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <deque>
#include <string>
#include <utility>

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

  void completed(const sg::Activity& activity) {
    const auto slot = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    const std::int64_t token = running[slot].second;
    // SimGrid still touches the activity after this callback: it is let go once time has moved on.
    ended.emplace_back(sg::Engine::get_clock(), std::move(running[slot].first));
    free_slots.push_back(slot);
    on_event(token);
  }

  void bury() {
    const double now = sg::Engine::get_clock();
    while (!ended.empty() && ended.front().first < now) ended.pop_front();
  }

  std::function<void(std::int64_t)> on_event;
  std::vector<std::string> words;
  std::vector<char*> argv;
  int argc = 0;
  std::unique_ptr<sg::Engine> engine;
  sg::NetZone* zone = nullptr;
  std::vector<sg::Host*> hosts;
  std::vector<double> scales;
  std::vector<std::pair<sg::ExecPtr, std::int64_t>> running;
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
  impl_->scales.push_back(scale);
  return static_cast<int>(impl_->hosts.size()) - 1;
}

void Engine::seal() { impl_->zone->seal(); }

void Engine::delay(double seconds, std::int64_t token) {
  simgrid::kernel::timer::Timer::set(now() + seconds, [this, token] { impl_->on_event(token); });
}

void Engine::load(const PoolLoad& load, double scale, std::int64_t token) {
  impl_->bury();
  sg::ExecPtr exec = sg::Exec::init();
  if (load.pools.size() == 1) {
    const std::size_t pool = static_cast<std::size_t>(load.pools[0]);
    exec->set_flops_amount(load.amounts[0] * scale * impl_->scales[pool]);
    exec->set_host(impl_->hosts[pool]);
  } else {
    std::vector<sg::Host*> hosts;
    std::vector<double> amounts;
    for (std::size_t i = 0; i < load.pools.size(); ++i) {
      const std::size_t pool = static_cast<std::size_t>(load.pools[i]);
      hosts.push_back(impl_->hosts[pool]);
      amounts.push_back(load.amounts[i] * scale * impl_->scales[pool]);
    }
    exec->set_flops_amounts(amounts);
    exec->set_hosts(hosts);
  }
  std::size_t slot = impl_->running.size();
  if (impl_->free_slots.empty()) {
    impl_->running.emplace_back();
  } else {
    slot = impl_->free_slots.back();
    impl_->free_slots.pop_back();
  }
  exec->set_data(reinterpret_cast<void*>(slot));
  impl_->running[slot] = {exec, token};
  exec->vetoable_start();
}

double Engine::now() const { return sg::Engine::get_clock(); }
void Engine::run() { impl_->engine->run(); }

}  // namespace wt
