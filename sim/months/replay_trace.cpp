#include "sim/months/replay_trace.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "sim/months/node_pool.hpp"
#include "sim/months/run_clock.hpp"
#include "sim/months/run_events.hpp"
#include "sim/months/slow_phases.hpp"

namespace wt {
namespace {

using namespace detail;

void check_policy(const RunScenario& s, const Continuation& p, const EntityTree& tree) {
  if (s.spares < 0 || s.spares > tree.spares)
    throw_usage("policy: found {} spare nodes on a trace of {}, needs 0 to {}", s.spares, tree.spares, tree.spares);
  const auto factors = static_cast<std::int64_t>(p.step_factor.size());
  if (p.units < 1 || tree.nodes % p.units != 0 || p.min_units < 1 || p.min_units > p.units || factors != p.units + 1)
    throw_usage(
        "policy: found {} units of {} nodes, at least {}, and {} step factors; needs units that divide the nodes, of "
        "which at least one is kept, and a factor for 0 to all of them",
        p.units, tree.nodes, p.min_units, factors);
  for (std::int64_t units = p.min_units; units <= p.units; ++units)
    if (const double factor = p.step_factor[static_cast<std::size_t>(units)]; !(factor >= 1 && std::isfinite(factor)))
      throw_usage("policy: found a step {} times as long with {} of {} units, needs a factor >= 1", factor, units,
                  p.units);
  if (s.tolerance.replicas > 0 && s.tolerance.replicas != p.units)
    throw_usage("policy: found {} replicas and {} units, needs as many", s.tolerance.replicas, p.units);
}

class TraceRun {
 public:
  TraceRun(const RunScenario& s, const Continuation& policy, FaultTrace& trace)
      : scenario_(s),
        policy_(policy),
        trace_(trace),
        clock_(run_clock(s)),
        give_up_(s.wall_limit_s > 0 ? ns(s.wall_limit_s) : std::min(kNever / 50, undisturbed_ns(clock_)) * 50),
        unit_nodes_(trace.tree().nodes / policy.units),
        tolerant_(s.tolerance.replicas > 0),
        verified_(s.silent.verified || s.silent.mean_s > 0),
        pool_(trace.tree().nodes, s.spares),
        slow_(trace),
        silent_(s.silent.mean_s, 1.0, trace.seed()),
        units_(policy.units),
        replicas_(static_cast<std::size_t>(policy.units)),
        stop_key_(splitmix64(trace.seed())) {}

  RunOutcome outcome() {
    for (bool first = true;; first = false) {
      const UptimeEnd how = train(first);
      if (how == UptimeEnd::finished) {
        out_.finished = true;
        return out_;
      }
      stand_still(how);
      load_undamaged();
      if (out_.wall_ns >= give_up_) return out_;
    }
  }

 private:
  // ---- the trace

  bool is_failure(const TraceEvent& e) const { return trace_.law(e).effect == FaultLaw::Effect::failure; }
  bool stops_job(const TraceEvent& e) const { return is_failure(e) && affects_job(e); }
  bool affects_job(const TraceEvent& e) const {
    const EntityTree::Nodes nodes = trace_.nodes_of(e);
    for (std::int64_t node = nodes.first; node < nodes.first + nodes.count; ++node)
      if (pool_.trains(node)) return true;
    return false;
  }
  std::int64_t drawn(double mean_s, double sigma, TraceDraw draw) const {
    return lognormal_ns(mean_s, sigma, stop_key_, draw);
  }
  /// Applies the next event of the trace.
  void apply(const TraceEvent& e) {
    ++applied_;
    const FaultLaw& law = trace_.law(e);
    if (law.effect == FaultLaw::Effect::planned) {
      ++out_.planned_stops;
      planned_stop_ends_ = std::max(planned_stop_ends_, e.at + lasts_of(e));
    }
    if (law.loses_newest_save) damaged_at_ = e.at;
    if (law.effect != FaultLaw::Effect::failure) return;
    const bool stops = stops_job(e);
    if (stops) last_failure_ = e, stop_key_ = e.key;
    out_.failures += stops;
    const EntityTree::Nodes nodes = trace_.nodes_of(e);
    for (std::int64_t node = nodes.first; node < nodes.first + nodes.count; ++node) {
      const std::int64_t slot = pool_.slot_of(node);
      if (law.nodes_to_repair && law.domain != FaultDomain::rank) pool_.repair(node, e.at, e.at + repair_of(e));
      if (tolerant_ && slot >= 0) lose_slot(slot, e.at);
    }
  }
  std::int64_t repair_of(const TraceEvent& e) const {
    if (trace_.law(e).lasts_s > 0 && is_failure(e)) return lasts_of(e);
    return lognormal_ns(scenario_.repair_s, scenario_.spread.repair, e.key, TraceDraw::repair);
  }
  std::int64_t lasts_of(const TraceEvent& e) const {
    return lognormal_ns(trace_.law(e).lasts_s, trace_.law(e).sigma, e.key, TraceDraw::lasts);
  }
  const TraceEvent* due(std::int64_t time) {
    const TraceEvent* e = trace_.event(applied_);
    return e && e->at <= time ? e : nullptr;
  }

  // ---- an uptime

  /// Wall times of the next failure and of the next stops.
  struct Ahead {
    std::int64_t failure = kNever, planned = kNever, found = kNever, growth = kNever, silent = kNever;
    TraceEvent failure_event;
    TraceEvent planned_event;
    std::int64_t stop() const { return std::min({planned, found, growth}); }
  };
  Ahead look_ahead() {
    Ahead out;
    out.found = slow_.found();
    if (units_ < policy_.units) out.growth = pool_.earliest_available((units_ + 1) * unit_nodes_, out_.wall_ns);
    for (std::size_t i = applied_;; ++i) {
      const TraceEvent* e = trace_.event(i);
      if (!e || e->at > give_up_) return out;
      if (tolerant_ && e->at > out.stop()) return out;
      const FaultLaw& law = trace_.law(*e);
      if (law.effect == FaultLaw::Effect::planned && e->at < out.planned) out.planned = e->at, out.planned_event = *e;
      if (law.effect == FaultLaw::Effect::slow_replaced && slow_.affects_job(*e, pool_))
        out.found = std::min(out.found, e->at + slow_.lasts(*e));
      if (law.effect == FaultLaw::Effect::silent && verified_ && affects_job(*e))
        out.silent = std::min(out.silent, e->at);
      if (tolerant_ || !stops_job(*e)) continue;
      out.failure = e->at;
      out.failure_event = *e;
      return out;
    }
  }
  UptimeEnd train(bool first) {
    ahead_ = look_ahead();
    const std::int64_t begin = out_.wall_ns;
    const auto in_uptime = [&](std::int64_t time) {
      return time < kNever ? std::max<std::int64_t>(0, time - begin) : kNever;
    };
    RunClock clock = clock_;
    clock.restart = activated_ ? 0 : drawn(scenario_.restart_s, scenario_.spread.restart, TraceDraw::restart);
    clock.reload = drawn(scenario_.reload_s, scenario_.spread.reload, TraceDraw::reload);
    activated_ = false;
    const TraceEvent& next = ahead_.failure_event;
    const bool lost = scenario_.local.interval_steps == 0 ||
                      (ahead_.failure < kNever && trace_.law(next).loses_local_copies) ||
                      uniform_of(next.key, TraceDraw::survival) >= scenario_.local.survival;
    const Events events{in_uptime(ahead_.failure), in_uptime(ahead_.stop()), silent_(), lost, in_uptime(ahead_.silent)};
    const std::int64_t stored = saved_.secured.steps;
    const Uptime up =
        jump_uptime(clock, saved_, first, events, [&](std::int64_t time) { return health(begin + time, begin); });
    for (std::size_t b = 0; b < kBuckets; ++b) out_.buckets_ns[b] += up.spent[b];
    out_.wall_ns += up.length;
    saved_ = up.saved;
    while (const TraceEvent* e = due(out_.wall_ns)) apply(*e);
    slow_.pass(out_.wall_ns, pool_);
    out_.stragglers = slow_.count();
    // Only time since the last save to storage tells when that was written.
    const std::int64_t since = up.spent[static_cast<std::size_t>(Bucket::wasted_progress)] + beyond_storage();
    const bool saved = saved_.secured.steps > stored;
    if (up.how == UptimeEnd::planned || (saved && damaged_at_ < out_.wall_ns - since + clock_.persist))
      damaged_at_ = kNever;
    load_undamaged();
    return up.how;
  }

  /// Step time of the work that only local copies hold.
  std::int64_t beyond_storage() const {
    const Work &copied = saved_.loaded, &stored = saved_.secured;
    return (copied.steps - stored.steps) * clock_.step + copied.longer - stored.longer;
  }
  /// If the newest save in storage is damaged and would be loaded, the run falls back to the one before: one save
  /// interval.
  void load_undamaged() {
    if (damaged_at_ == kNever || saved_.loaded.steps > saved_.secured.steps) return;
    damaged_at_ = kNever;
    const Work spoilt = saved_.secured;
    const std::int64_t lost = std::min(clock_.interval, spoilt.steps),
                       longer = lost > 0 ? spoilt.longer / spoilt.steps * lost : 0;
    spend_on(Bucket::productive, -lost * clock_.step);
    spend_on(Bucket::other, -longer);
    spend_on(Bucket::wasted_progress, lost * clock_.step + longer);
    saved_.secured = saved_.loaded = {spoilt.steps - lost, spoilt.longer - longer};
  }

  Health health(std::int64_t now, std::int64_t begin) {
    Health h;
    const std::int64_t available = tolerant_ ? available_replicas(now, h) : units_;
    std::int64_t until = slow_.pass(now, pool_);
    if (tolerant_) {
      until = std::min(until, next_join(now));
      const std::int64_t loss = next_loss(until);
      h.redo = loss <= until;
      until = std::min(until, loss);
    }
    h.step = std::llround(static_cast<double>(clock_.step) * policy_.step_factor[static_cast<std::size_t>(available)] *
                          slow_.factor());
    h.until = until < kNever ? until - begin : kNever;
    return h;
  }

  // ---- replicas that are lost and rejoin while the others train

  void lose_slot(std::int64_t slot, std::int64_t at) {
    Replica& replica = replicas_[static_cast<std::size_t>(slot / unit_nodes_)];
    std::int64_t whole = at + ns(scenario_.tolerance.stall_s);
    if (pool_.vacant(slot)) whole = pool_.assign_standby(slot, whole);
    replica.complete_at = std::max(replica.complete_at, whole);
    replica.joins_at = replica.complete_at + ns(scenario_.tolerance.recover_s);
    stall_due_ = true;
  }
  std::int64_t available_replicas(std::int64_t now, Health& h) {
    while (const TraceEvent* e = due(now)) apply(*e);
    const auto away_at = [&](std::int64_t time) {
      return std::ranges::count_if(replicas_, [&](const Replica& r) { return r.joins_at > time; });
    };
    h.too_few = policy_.units - away_at(now) < policy_.min_units;
    if (stall_due_ && !h.too_few) {
      h.pause = ns(scenario_.tolerance.stall_s);
      while (const TraceEvent* e = due(now + h.pause)) apply(*e);
    }
    stall_due_ = false;
    return std::max<std::int64_t>(policy_.min_units, policy_.units - away_at(now));
  }
  std::int64_t next_join(std::int64_t now) const {
    std::int64_t out = kNever;
    for (const Replica& replica : replicas_)
      if (replica.joins_at > now) out = std::min(out, replica.joins_at);
    return out;
  }
  /// kNever: no failure until then.
  std::int64_t next_loss(std::int64_t until) {
    for (std::size_t i = applied_;; ++i) {
      const TraceEvent* e = trace_.event(i);
      if (!e || e->at > std::min(until, give_up_)) return kNever;
      if (stops_job(*e)) return e->at;
    }
  }

  // ---- between uptimes

  void stand_still(UptimeEnd how) {
    if (how == UptimeEnd::failed) return fail();
    stop_key_ = splitmix64(stop_key_);  // unless an event of the trace sets it below
    if (how == UptimeEnd::corrupted) {
      ++out_.silent_errors;
      wait_for_nodes([this] { return reschedule(); });
    } else if (ahead_.found <= std::min(ahead_.planned, ahead_.growth)) {
      slow_.exchange([&](const TraceEvent& e) {
        stop_key_ = e.key;
        pool_.repair(trace_.nodes_of(e).first, out_.wall_ns, out_.wall_ns + repair_of(e));
      });
      wait_for_nodes([this] { return reschedule(); });
    } else {
      if (ahead_.planned <= ahead_.growth) {
        stop_key_ = ahead_.planned_event.key;
        spend(Bucket::custom_events, lasts_of(ahead_.planned_event));
      }
      wait_for_nodes([] { return 0; });
    }
  }

  std::int64_t detect() const {
    const double known_s = out_.failures > 0 ? trace_.law(last_failure_).detect_s : -1;
    return known_s >= 0 ? ns(known_s) : drawn(scenario_.detect_s, scenario_.spread.detect, TraceDraw::detect);
  }
  std::int64_t reschedule() const {
    return drawn(scenario_.reschedule_s, scenario_.spread.reschedule, TraceDraw::reschedule);
  }

  void fail() {
    if (tolerant_) {  // all start together, once lost replicas have their nodes
      const std::int64_t whole =
          policy_.restart_all ? 0 : std::ranges::max(replicas_, {}, &Replica::complete_at).complete_at;
      std::ranges::fill(replicas_, Replica{});
      wait_for_nodes([&] { return std::max(detect() + reschedule(), whole - out_.wall_ns); });
      return;
    }
    const std::int64_t noticed = out_.wall_ns + detect();
    const bool spare = pool_.available_nodes(noticed) >= trace_.tree().nodes;
    out_.without_spare += !spare;
    const bool shrinks = !spare && pool_.available_nodes(noticed) >= policy_.min_units * unit_nodes_;
    activated_ = policy_.activate_s >= 0 && spare;
    wait_for_nodes([&] { return detect() + (activated_ ? ns(policy_.activate_s) : shrinks ? 0 : reschedule()); });
  }

  /// The job is down for `down`, then until planned stops are over and enough nodes are available. A failure in that
  /// time is recovered from in a time of its own.
  void wait_for_nodes(const std::function<std::int64_t()>& down) {
    std::int64_t ready = std::max(out_.wall_ns + down(), planned_stop_ends_);
    while (true) {
      while (const TraceEvent* e = due(ready)) {
        const bool again = !tolerant_ && stops_job(*e);
        const std::int64_t at = e->at;
        apply(*e);
        ready = std::max({ready, planned_stop_ends_, again ? at + down() : 0});
      }
      units_ = std::min(policy_.units, pool_.available_nodes(ready) / unit_nodes_);
      if (tolerant_ || units_ >= policy_.min_units) break;
      activated_ = false;  // the job is given up, so processes start anew
      ready = pool_.earliest_available(policy_.min_units * unit_nodes_, ready);
      if (ready >= give_up_) break;
    }
    if (tolerant_)
      units_ = policy_.units;
    else
      pool_.fill(units_ * unit_nodes_, ready);
    stall_due_ = false;
    spend(Bucket::infrastructure_recovery, ready - out_.wall_ns);
    slow_.pass(out_.wall_ns, pool_);
  }

  void spend(Bucket bucket, std::int64_t time) {
    spend_on(bucket, time);
    out_.wall_ns += time;
  }
  void spend_on(Bucket bucket, std::int64_t time) { out_.buckets_ns[static_cast<std::size_t>(bucket)] += time; }

  const RunScenario& scenario_;
  const Continuation& policy_;
  FaultTrace& trace_;
  const RunClock clock_;
  const std::int64_t give_up_, unit_nodes_;
  const bool tolerant_, verified_;
  NodePool pool_;
  SlowPhases slow_;
  Draw silent_;
  std::int64_t units_;
  /// Wall times: the replica has all of its nodes; it trains with the others.
  struct Replica {
    std::int64_t complete_at = 0, joins_at = 0;
  };
  std::vector<Replica> replicas_;
  bool stall_due_ = false;
  bool activated_ = false;   ///< hot spares have taken over: the next start is theirs
  std::size_t applied_ = 0;  ///< events of the trace applied so far
  std::int64_t planned_stop_ends_ = 0;
  std::int64_t damaged_at_ = kNever;  ///< when the newest save was damaged, wall time
  TraceEvent last_failure_;           ///< the last failure
  std::uint64_t stop_key_;            ///< of the last stop; seeds the times of its recovery
  Ahead ahead_;
  Saved saved_;
  RunOutcome out_;
};

}  // namespace

RunOutcome replay_trace(const RunScenario& scenario, const Continuation& policy, FaultTrace& trace) {
  check_scenario(scenario);
  check_policy(scenario, policy, trace.tree());
  return TraceRun(scenario, policy, trace).outcome();
}

}  // namespace wt
