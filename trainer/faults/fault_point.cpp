#include "trainer/faults/fault_point.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/faults/file_damage.hpp"
#include "trainer/faults/strike.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Place = FaultTime::Place;

struct ArmedEvent {
  std::size_t number;
  FaultEvent event;
  std::atomic<bool> struck{false};
};

/// A slowdown of this rank.
struct Slowness {
  Strike strike;
  double factor;
  double until_s;                       ///< steady clock; 0 = until the end
  double computed_s = 0, waited_s = 0;  ///< of the ops since it began
  int ops = 0;
};

struct Armed {
  Scenario scenario;
  FaultedRank self;
  StrikeLog log;
  std::deque<ArmedEvent> events = {};
  std::vector<Slowness> slow = {};  ///< those that are not over; the largest factor acts
  std::mutex slow_lock = {};        ///< guards `slow`: the checkpoint's thread injects faults, too
  TensorAccess tensors = {};
  std::vector<pid_t> members = {};  ///< by rank; empty where processes still have their initial ranks
};
std::unique_ptr<Armed> armed;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

RankPlace place_of(std::int64_t rank, std::optional<std::int64_t> node) {
  const NodeShape& nodes = armed->scenario.nodes;
  RankPlace out{rank, node.value_or(rank / nodes.ranks), 0, rank / armed->self.ranks_per_replica,
                armed->self.generation};
  if (nodes.per_rack > 0) out.rack = out.node / nodes.per_rack;
  return out;
}

/// Whether this rank injects the event. Rank 0 acts for storage, store and agent, a node's first rank for its local
/// checkpoints.
bool carries_out(const FaultEvent& event, const RankPlace& self) {
  const FaultDomain domain = event.who.domain;
  if (domain == FaultDomain::storage || domain == FaultDomain::store || domain == FaultDomain::agent)
    return self.rank == 0 && self.generation >= event.generation && self.generation < event.generation + event.repeats;
  return strikes(event, self);
}

/// The place in the scenario's words.
std::string place_name(const FaultTime& when) {
  return to_string(when) + (when.place == Place::checkpoint ? fmt::format(" after {:g}", when.after) : std::string());
}

Strike strike_of(const ArmedEvent& e, const RankPlace& place, std::int64_t step) {
  return {
      e.number, place.generation, place.rank, place.node, step, place_name(e.event.when), to_string(e.event.what.kind)};
}

StrikeContext context_of(const ArmedEvent& e, std::int64_t step) {
  StrikeContext out{e.event, armed->self, armed->log, strike_of(e, place_of(armed->self.rank, armed->self.node), step),
                    {},      {}};
  if (e.event.who.domain == FaultDomain::rank) {
    out.victims = {{getpid(), armed->self.rank, armed->self.node}};
  } else {
    for (const RankProcess& process : ranks_here(armed->members))
      if (strikes(e.event, place_of(process.rank, process.node))) out.victims.push_back(process);
  }
  for (const RankProcess& victim : out.victims)
    out.victim_strikes.push_back(strike_of(e, place_of(victim.rank, victim.node), step));
  return out;
}

/// The process with the store, or this process's parent.
pid_t process_of(FaultDomain domain) {
  return domain == FaultDomain::store && !armed->self.agent_store ? getpid() : getppid();
}

void kill_or_stop(const StrikeContext& c) {
  const bool stop = c.event.what.kind == FaultKind::hang;
  const FaultDomain domain = c.event.who.domain;
  if (domain == FaultDomain::store || domain == FaultDomain::agent) {
    const pid_t pid = process_of(domain);
    c.log.add(c.strike, {{"pid", pid}});
    if (stop) return stop_processes({pid}, c);
    kill(pid, SIGKILL);
    return;
  }
  // The first victim to reach the place also kills the others, and holds the lock until its end.
  auto lock = std::make_unique<StrikeLog::Lock>(c.log);
  if (c.victims.size() > 1 && c.log.struck(c.strike.event, c.strike.generation, c.strike.rank)) return;
  const std::vector<pid_t> pids = mapped(c.victims, &RankProcess::pid);
  for (const Strike& strike : c.victim_strikes) c.log.add(strike, {{"pids", pids}});
  if (!stop) return kill_victims(c);
  lock.reset();
  stop_processes(pids, c);
}

void hang_thread(const StrikeContext& c) {
  c.log.add(c.strike, json::object());
  const double begin = steady_s();
  while (!c.event.lasts_s || steady_s() - begin < *c.event.lasts_s) sleep_s(0.01);
  c.log.add(c.strike, {{"waited_s", steady_s() - begin}});
}

void slow_down(const ArmedEvent& e, const StrikeContext& c) {
  c.log.add(c.strike, {{"factor", e.event.what.factor}});
  const std::lock_guard lock(armed->slow_lock);
  armed->slow.push_back({c.strike, e.event.what.factor, e.event.lasts_s ? steady_s() + *e.event.lasts_s : 0});
}

/// Waits until the last save before the step is complete.
void wait_for_save_before(std::int64_t step) {
  const std::int64_t interval = armed->self.save_interval, last = interval > 0 ? (step - 1) / interval * interval : 0;
  if (last > 0) wait_for_checkpoint(armed->self.folder / kCheckpointsFolder, last);
}

void damage(const StrikeContext& c) {
  const std::filesystem::path checkpoints = c.event.what.level == CopyLevel::storage
                                                ? c.self.folder / kCheckpointsFolder
                                                : c.self.folder / kNodesFolder / std::to_string(c.strike.node) /
                                                      (c.event.what.level == CopyLevel::local ? "local" : "peer");
  if (c.event.what.level == CopyLevel::storage) wait_for_save_before(c.strike.step);
  const StrikeLog::Lock lock(c.log);
  if (c.victims.size() > 1 && c.log.struck(c.strike.event, c.strike.generation, c.strike.rank)) return;
  const json proof = damage_newest(checkpoints, c.event.what.damage);
  if (c.victim_strikes.empty()) return c.log.add(c.strike, proof);
  for (const Strike& strike : c.victim_strikes) c.log.add(strike, proof);
}

void corrupt_tensor(const StrikeContext& c) {
  if (!armed->tensors) throw_runtime("no tensors are there to be corrupted at {}", c.strike.at);
  armed->tensors(c.event.what, [&](HostNumbers numbers) { c.log.add(c.strike, corrupt(numbers, c.event.what)); });
}

void announce(const StrikeContext& c) {
  {
    const StrikeLog::Lock lock(c.log);
    if (c.log.struck(c.strike.event, c.strike.generation, c.strike.rank)) return;
    for (const Strike& strike : c.victim_strikes)
      c.log.add(strike, {{"pid", getppid()}, {"signal", c.event.what.signal}, {"notice_s", c.event.what.notice_s}});
  }
  announce_end(getppid(), c);
}

void strike(ArmedEvent& e, std::int64_t step) {
  if (e.struck.exchange(true)) return;
  if (e.event.when.saved) wait_for_save_before(step);
  const StrikeContext c = context_of(e, step);
  switch (e.event.what.kind) {
    case FaultKind::kill:
      return kill_or_stop(c);
    case FaultKind::hang:
      return e.event.what.thread ? hang_thread(c) : kill_or_stop(c);
    case FaultKind::abort:
    case FaultKind::segfault:
      c.log.add(c.strike, {{"pid", getpid()}});
      end_with_signal(e.event.what.kind == FaultKind::abort ? SIGABRT : SIGSEGV);
    case FaultKind::exit:
      c.log.add(c.strike, {{"pid", getpid()}, {"status", e.event.what.status}});
      _exit(e.event.what.status);
    case FaultKind::exception:
      c.log.add(c.strike, {{"pid", getpid()}});
      throw_runtime("rank {}: {} of step {}: an injected exception", c.strike.rank, c.strike.at, step);
    case FaultKind::slow:
      return slow_down(e, c);
    case FaultKind::damage:
      return damage(c);
    case FaultKind::corrupt:
      return corrupt_tensor(c);
    case FaultKind::disk_full:
    case FaultKind::file_too_large:
      c.log.add(c.strike, json::object());
      return limit_files(c);
    case FaultKind::partition:
      return c.log.add(c.strike, cut_connections(c));
    case FaultKind::maintenance:
      return announce(c);
  }
}

template <typename Here>
void strike_where(std::int64_t step, Here&& here) {
  if (!armed) return;
  for (ArmedEvent& e : armed->events)
    if (!e.struck && here(e.event.when)) strike(e, step);
}

}  // namespace

int generations_before() {
  const char* before = std::getenv("WINDTUNNEL_GENERATIONS_BEFORE");
  return before ? std::atoi(before) : 0;
}

void arm_faults(const Scenario& scenario, const FaultedRank& rank) {
  armed.reset(new Armed{scenario, rank, StrikeLog(rank.folder)});
  FaultedRank& self = armed->self;
  self.generation += generations_before();
  const RankPlace place = place_of(self.rank, armed->self.node);
  for (std::size_t i = 0; i < scenario.events.size(); ++i)
    if (carries_out(scenario.events[i], place) && !armed->log.struck(i, self.generation, self.rank)) {
      armed->events.emplace_back();
      armed->events.back().number = i;
      armed->events.back().event = scenario.events[i];
    }
  if (armed->events.empty()) armed.reset();
}

void name_members(const std::vector<std::int64_t>& processes) {
  if (armed) armed->members.assign(processes.begin(), processes.end());
}

void pass_fault_point(Place place, std::int64_t step) {
  strike_where(step,
               [&](const FaultTime& when) { return when.place == place && (when.step == 0 || when.step == step); });
}

void pass_fault_point(std::int64_t step, std::string_view op, FaultTime::Phase phase) {
  strike_where(step, [&](const FaultTime& when) {
    return when.place == Place::op && when.step == step && when.phase == phase && when.op == op;
  });
}

void pass_checkpoint_bytes(std::int64_t step, std::int64_t done, std::int64_t total) {
  strike_where(step, [&](const FaultTime& when) {
    return when.place == Place::checkpoint && when.step == step &&
           static_cast<double>(done) >= when.after * static_cast<double>(total);
  });
}

namespace {

void log_proof(const Slowness& slow) {
  armed->log.add(
      slow.strike,
      {{"factor", slow.factor}, {"ops", slow.ops}, {"computed_s", slow.computed_s}, {"waited_s", slow.waited_s}});
}

}  // namespace

void pass_computation(double seconds) {
  if (!armed) return;
  constexpr int kProved = 20;  // samples of the proof, or as many as occur, at least one
  const std::lock_guard lock(armed->slow_lock);
  std::erase_if(armed->slow, [](const Slowness& slow) {
    const bool over = slow.ops > 0 && slow.until_s > 0 && steady_s() > slow.until_s;
    if (over && slow.ops < kProved) log_proof(slow);
    return over;
  });
  if (armed->slow.empty()) return;
  double factor = 1;
  for (const Slowness& slow : armed->slow) factor = std::max(factor, slow.factor);
  const double begin = steady_s();
  sleep_s((factor - 1) * seconds);
  const double waited_s = steady_s() - begin;
  for (Slowness& slow : armed->slow) {
    slow.computed_s += seconds, slow.waited_s += waited_s;
    if (++slow.ops == kProved) log_proof(slow);
  }
}

void give_tensors_to_faults(TensorAccess access) {
  if (armed) armed->tensors = std::move(access);
}

}  // namespace wt
