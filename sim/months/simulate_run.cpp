#include "sim/months/simulate_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/quantity.hpp"
#include "configs/spec/support/statistics.hpp"
#include "sim/cluster/child.hpp"
#include "sim/months/events.hpp"
#include "sim/months/steps_on_simgrid.hpp"

namespace wt {
namespace {

using namespace detail;

void check(const RunScenario& s) {
  if (s.steps < 1 || s.interval_steps < 1)
    throw_error(Code::usage, "run scenario: found {} steps and {} steps between saves, needs at least 1 of each",
                s.steps, s.interval_steps);
  const auto time = [](const char* what, double value) {
    if (!(value >= 0 && value < kLongest_s))
      throw_error(Code::usage, "run scenario: {}: found {} s, needs 0 to {:.3g} s (70 years)", what, value, kLongest_s);
  };
  time("step_s", s.step_s);
  if (!(s.stragglers.factor >= 1 && std::isfinite(s.stragglers.factor)))
    throw_error(Code::usage, "run scenario: stragglers: found a step {} times as long, needs a factor of at least 1",
                s.stragglers.factor);
  const double steps = static_cast<double>(s.steps), saves = steps / static_cast<double>(s.interval_steps) + 2;
  const bool tolerant = s.tolerance.replicas > 0;
  time(tolerant ? "2 x steps x step_s x stragglers.factor" : "steps x step_s x stragglers.factor",
       (tolerant ? 2 : 1) * steps * s.step_s * s.stragglers.factor);
  time("steps x blocking_s / interval_steps", saves * (s.blocking_s + s.persist_s + s.silent.verify_s));
  if (s.local.interval_steps < 0 || (s.local.interval_steps > 0 && s.interval_steps % s.local.interval_steps != 0))
    throw_error(
        Code::usage,
        "run scenario: local.interval_steps: found {}, needs a divisor of the {} steps between saves, or 0 for none",
        s.local.interval_steps, s.interval_steps);
  if (!(s.local.survival >= 0 && s.local.survival <= 1))
    throw_error(Code::usage, "run scenario: local.survival: found {}, needs a share of failures from 0 to 1",
                s.local.survival);
  if (s.local.interval_steps > 0)
    time("steps x local.blocking_s / local.interval_steps",
         (steps / static_cast<double>(s.local.interval_steps) + 2) * (s.local.blocking_s + s.silent.verify_s));
  time("local.blocking_s", s.local.blocking_s);
  time("local.reload_s", s.local.reload_s);
  time("silent.mean_s", s.silent.mean_s);
  time("silent.verify_s", s.silent.verify_s);
  if (s.tolerance.replicas < 0 || s.tolerance.replicas == 1)
    throw_error(Code::usage, "run scenario: tolerance.replicas: found {}, needs at least 2, or 0 for none",
                s.tolerance.replicas);
  if (s.failures.nodes < 0 || (tolerant && s.failures.nodes > 0))
    throw_error(
        Code::usage,
        "run scenario: failures.nodes: found {} with {} replicas that may be lost, needs a number of nodes without "
        "such replicas, or 0 for failures of the job",
        s.failures.nodes, s.tolerance.replicas);
  time("tolerance.recover_s", s.tolerance.recover_s);
  time("tolerance.stall_s", s.tolerance.stall_s);
  if (tolerant && s.failures.mean_s > 0 && !(s.failures.mean_s > s.tolerance.stall_s && s.failures.mean_s >= s.step_s))
    throw_error(
        Code::usage,
        "run scenario: tolerance: found a stall of {} s and {} s between failures, needs failures further apart "
        "than a stall and a step ({} s)",
        s.tolerance.stall_s, s.failures.mean_s, s.step_s);
  time("blocking_s", s.blocking_s);
  time("persist_s", s.persist_s);
  time("detect_s", s.detect_s);
  time("reschedule_s", s.reschedule_s);
  time("restart_s", s.restart_s);
  time("reload_s", s.reload_s);
  time("startup_s", s.startup_s);
  time("planned_mean_s", s.planned_mean_s);
  time("planned_stop_s", s.planned_stop_s);
  time("stragglers.mean_s", s.stragglers.mean_s);
  if (s.stragglers.mean_s > 0 && s.stragglers.mean_s < s.step_s)
    throw_error(Code::usage, "run scenario: stragglers.mean_s: found {} s, needs at least a step ({} s), or 0 for none",
                s.stragglers.mean_s, s.step_s);
  time("stragglers.duration_s", s.stragglers.duration_s);
  time("maintenance_every_s", s.maintenance_every_s);
  time("maintenance_s", s.maintenance_s);
  time("repair_s", s.repair_s);
  time("wall_limit_s", s.wall_limit_s);
  if (ns(s.step_s) < 1)
    throw_error(Code::usage, "run scenario: step_s: found {}, needs at least a nanosecond", s.step_s);
  if (s.maintenance_every_s > 0 && s.maintenance_s >= s.maintenance_every_s)
    throw_error(Code::usage,
                "run scenario: found maintenance of {} s every {} s, needs windows shorter than the time between them",
                s.maintenance_s, s.maintenance_every_s);
  if (!(s.failures.mean_s >= 0) || !(s.failures.shape > 0))
    throw_error(Code::usage, "run scenario: failures: found mean {} s and shape {}, needs mean >= 0 and shape > 0",
                s.failures.mean_s, s.failures.shape);
}

RunOutcome run(const RunScenario& s, std::uint64_t seed, const RunExecution& execution) {
  const RunClock clock{s.steps,
                       s.interval_steps,
                       ns(s.step_s),
                       ns(s.blocking_s),
                       ns(s.persist_s),
                       ns(s.restart_s),
                       ns(s.reload_s),
                       ns(s.startup_s),
                       s.local.interval_steps,
                       ns(s.local.blocking_s),
                       ns(s.local.reload_s),
                       ns(s.silent.verify_s)};
  const std::int64_t saves = s.steps / s.interval_steps + 1;
  const std::int64_t local_saves = s.local.interval_steps > 0 ? s.steps / s.local.interval_steps : 0;
  const std::int64_t undisturbed = s.steps * clock.step + saves * (clock.blocking + clock.verify) +
                                   local_saves * (clock.local_blocking + clock.verify) + clock.persist + clock.restart +
                                   clock.startup;
  const std::int64_t give_up = s.wall_limit_s > 0 ? ns(s.wall_limit_s) : std::min(kNever / 50, undisturbed) * 50;
  const std::uint64_t seed2 = mix(seed), seed3 = mix(seed2), seed4 = mix(seed3), seed5 = mix(seed4);
  const bool tolerant = s.tolerance.replicas > 0;
  NodeFailures nodes(s.failures, seed);
  Draw failure(tolerant || nodes.any() ? 0 : s.failures.mean_s, s.failures.shape, seed),
      planned(s.planned_mean_s, 1.0, seed2), silent(s.silent.mean_s, 1.0, seed4);
  Stragglers stragglers(s.stragglers, seed3);
  Chance survives(s.local.interval_steps > 0 ? s.local.survival : 0, seed5);
  Spares spares(s.spares, ns(s.repair_s));
  Replicas replicas(s.tolerance, Draw(tolerant ? s.failures.mean_s : 0, s.failures.shape, seed), spares);
  const std::int64_t window_every = ns(s.maintenance_every_s), slow_step = ns(s.step_s * s.stragglers.factor);

  RunOutcome out;
  const auto spend = [&](Bucket bucket, std::int64_t time) {
    out.buckets_ns[static_cast<std::size_t>(bucket)] += time;
    out.wall_ns += time;
    execution.down(time);
  };
  Saved saved;
  std::int64_t ran = 0, window = window_every > 0 ? window_every : kNever;  // the next one, wall time
  const HealthAt health = [&](std::int64_t time) {
    const Stragglers::Phase phase = stragglers.at(ran + time);
    Health h{phase.slow ? slow_step : clock.step, phase.until < kNever ? phase.until - ran : kNever};
    if (tolerant) replicas.at(time, h);
    return h;
  };
  const auto recover = [&](std::int64_t down) {
    spend(Bucket::infrastructure_recovery, down + spares.wait(out.wall_ns, out.wall_ns + down));
  };
  const auto maintain = [&] {
    ++out.planned_stops;
    spend(Bucket::custom_events, ns(s.maintenance_s));
    window = (out.wall_ns / window_every + 1) * window_every;
  };
  for (bool first = true;; first = false) {
    const std::int64_t stop = planned(), to_window = window < kNever ? window - out.wall_ns : kNever;
    const std::int64_t to_found = stragglers.found() < kNever ? stragglers.found() - ran : kNever;
    const Events events{nodes.any() ? nodes.next() - ran : failure(), std::min({stop, to_window, to_found}), silent(),
                        !survives()};
    replicas.restart(out.wall_ns);
    const Uptime up = execution.uptime(clock, saved, first, events, health);
    for (std::size_t b = 0; b < kBuckets; ++b) out.buckets_ns[b] += up.spent[b];
    out.wall_ns += up.length;
    ran += up.length;
    saved = up.saved;
    out.stragglers = stragglers.count(ran);
    out.failures += replicas.lost(up.length);
    if (up.how == UptimeEnd::finished) {
      out.finished = true;
      return out;
    }
    if (stragglers.found() <= ran) stragglers.exchange(ran);  // whatever the stop is for
    if (up.how == UptimeEnd::failed) {
      const std::int64_t down = ns(s.detect_s) + ns(s.reschedule_s);
      if (tolerant) {  // the losses are counted and have their spares: all replicas come back together
        spend(Bucket::infrastructure_recovery, std::max(down, replicas.whole() - out.wall_ns));
      } else {
        ++out.failures;
        if (nodes.any()) nodes.replace();
        recover(down);
      }
    } else if (up.how == UptimeEnd::corrupted) {
      ++out.silent_errors;
      recover(ns(s.reschedule_s));
    } else if (to_found <= std::min(stop, to_window)) {
      recover(ns(s.reschedule_s));
    } else if (stop < to_window) {
      ++out.planned_stops;
      spend(Bucket::custom_events, ns(s.planned_stop_s));
    } else {
      maintain();
    }
    if (out.wall_ns >= window) maintain();
    if (out.wall_ns >= give_up) return out;
  }
}

}  // namespace

RunOutcome simulate_run(const RunScenario& scenario, std::uint64_t seed) {
  check(scenario);
  return run(scenario, seed, {detail::jump_uptime});
}

RunOutcome simulate_run_stepping(const RunScenario& scenario, std::uint64_t seed) {
  check(scenario);
  return run(scenario, seed, detail::counted_steps());
}

RunOutcome simulate_run_on_simgrid(const RunScenario& scenario, std::uint64_t seed) {
  check(scenario);
  const std::string bytes = run_in_child([&] {
    RunOutcome out;
    FailingHost::simulate([&](FailingHost& host) { out = run(scenario, seed, detail::steps_on(host)); });
    return std::string(reinterpret_cast<const char*>(&out), sizeof out);
  });
  static_assert(std::is_trivially_copyable_v<RunOutcome>);
  RunOutcome out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, std::uint64_t seed) {
  check(scenario);
  if (n < 1) throw_error(Code::usage, "simulated runs: found {}, needs at least 1", n);
  RunDistribution out;
  out.runs = n;
  std::vector<double> goodputs;
  for (std::int64_t i = 0; i < n; ++i) {
    const RunOutcome one = run(scenario, mix(seed + mix(static_cast<std::uint64_t>(i))), {detail::jump_uptime});
    out.finished += one.finished;
    out.wall_s.push_back(one.wall_s());
    goodputs.push_back(one.goodput());
    for (std::size_t b = 0; b < kBuckets; ++b) out.bucket_mean_s[b] += static_cast<double>(one.buckets_ns[b]) * 1e-9;
    out.failures += static_cast<double>(one.failures);
    out.planned_stops += static_cast<double>(one.planned_stops);
    out.stragglers += static_cast<double>(one.stragglers);
    out.silent_errors += static_cast<double>(one.silent_errors);
  }
  const double runs = static_cast<double>(n);
  for (double& seconds : out.bucket_mean_s) seconds /= runs;
  out.failures /= runs;
  out.planned_stops /= runs;
  out.stragglers /= runs;
  out.silent_errors /= runs;
  out.p50_s = quantile(out.wall_s, 0.50);
  out.p90_s = quantile(out.wall_s, 0.90);
  out.p95_s = quantile(out.wall_s, 0.95);
  out.goodput_p05 = quantile(goodputs, 0.05);
  out.mean_s = mean(out.wall_s);
  out.goodput = mean(goodputs);
  return out;
}

}  // namespace wt
