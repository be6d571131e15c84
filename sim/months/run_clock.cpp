#include "sim/months/run_clock.hpp"

#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "sim/months/run_events.hpp"

namespace wt::detail {

void check_scenario(const RunScenario& s) {
  if (s.steps < 1 || s.interval_steps < 1)
    throw_usage("run scenario: found {} steps and {} steps between saves, needs at least 1 of each", s.steps,
                s.interval_steps);
  const auto time = [](const char* what, double value) {
    if (!(value >= 0 && value < kLongest_s))
      throw_usage("run scenario: {}: found {} s, needs 0 to {:.3g} s (70 years)", what, value, kLongest_s);
  };
  // A drawn time beyond the run's end never comes, so means have no upper limit.
  const auto mean = [](const char* what, double value) {
    if (!(value >= 0)) throw_usage("run scenario: {}: found {} s, needs a mean >= 0, or 0 for none", what, value);
  };
  time("step_s", s.step_s);
  if (!(s.stragglers.factor >= 1 && std::isfinite(s.stragglers.factor)))
    throw_usage("run scenario: stragglers: found a step {} times as long, needs a factor of at least 1",
                s.stragglers.factor);
  const double steps = static_cast<double>(s.steps), saves = steps / static_cast<double>(s.interval_steps) + 2;
  const bool tolerant = s.tolerance.replicas > 0;
  time(tolerant ? "2 x steps x step_s x stragglers.factor" : "steps x step_s x stragglers.factor",
       (tolerant ? 2 : 1) * steps * s.step_s * s.stragglers.factor);
  time("steps x blocking_s / interval_steps", saves * (s.blocking_s + s.persist_s + s.silent.verify_s));
  if (s.local.interval_steps < 0 || (s.local.interval_steps > 0 && s.interval_steps % s.local.interval_steps != 0))
    throw_usage(
        "run scenario: local.interval_steps: found {}, needs a divisor of the {} steps between saves, or 0 for none",
        s.local.interval_steps, s.interval_steps);
  if (!(s.local.survival >= 0 && s.local.survival <= 1))
    throw_usage("run scenario: local.survival: found {}, needs a share of failures from 0 to 1", s.local.survival);
  if (s.local.interval_steps > 0)
    time("steps x local.blocking_s / local.interval_steps",
         (steps / static_cast<double>(s.local.interval_steps) + 2) * (s.local.blocking_s + s.silent.verify_s));
  time("local.blocking_s", s.local.blocking_s);
  time("local.reload_s", s.local.reload_s);
  time("silent.mean_s", s.silent.mean_s);
  time("silent.verify_s", s.silent.verify_s);
  if (s.tolerance.replicas < 0 || s.tolerance.replicas == 1)
    throw_usage("run scenario: tolerance.replicas: found {}, needs at least 2, or 0 for none", s.tolerance.replicas);
  if (s.failures.nodes < 0 || (tolerant && s.failures.nodes > 0))
    throw_usage(
        "run scenario: failures.nodes: found {} with {} replicas that may be lost, needs a number of nodes without "
        "such replicas, or 0 for failures of the job",
        s.failures.nodes, s.tolerance.replicas);
  time("tolerance.recover_s", s.tolerance.recover_s);
  time("tolerance.stall_s", s.tolerance.stall_s);
  if (tolerant && s.failures.mean_s > 0 && !(s.failures.mean_s > s.tolerance.stall_s && s.failures.mean_s >= s.step_s))
    throw_usage(
        "run scenario: tolerance: found a stall of {} s and {} s between failures, needs failures further apart than a "
        "stall and a step ({} s)",
        s.tolerance.stall_s, s.failures.mean_s, s.step_s);
  time("blocking_s", s.blocking_s);
  time("persist_s", s.persist_s);
  time("detect_s", s.detect_s);
  time("reschedule_s", s.reschedule_s);
  time("restart_s", s.restart_s);
  time("reload_s", s.reload_s);
  time("startup_s", s.startup_s);
  mean("planned_mean_s", s.planned_mean_s);
  time("planned_stop_s", s.planned_stop_s);
  mean("stragglers.mean_s", s.stragglers.mean_s);
  if (s.stragglers.mean_s > 0 && s.stragglers.mean_s < s.step_s)
    throw_usage("run scenario: stragglers.mean_s: found {} s, needs at least a step ({} s), or 0 for none",
                s.stragglers.mean_s, s.step_s);
  time("stragglers.duration_s", s.stragglers.duration_s);
  time("maintenance_every_s", s.maintenance_every_s);
  time("maintenance_s", s.maintenance_s);
  time("repair_s", s.repair_s);
  time("wall_limit_s", s.wall_limit_s);
  if (ns(s.step_s) < 1) throw_usage("run scenario: step_s: found {}, needs at least a nanosecond", s.step_s);
  if (s.maintenance_every_s > 0 && s.maintenance_s >= s.maintenance_every_s)
    throw_usage("run scenario: found maintenance of {} s every {} s, needs windows shorter than the time between them",
                s.maintenance_s, s.maintenance_every_s);
  if (!(s.failures.mean_s >= 0) || !(s.failures.shape > 0))
    throw_usage("run scenario: failures: found mean {} s and shape {}, needs mean >= 0 and shape > 0",
                s.failures.mean_s, s.failures.shape);
}

RunClock run_clock(const RunScenario& s) {
  return {.steps = s.steps,
          .interval = s.interval_steps,
          .step = ns(s.step_s),
          .blocking = ns(s.blocking_s),
          .persist = ns(s.persist_s),
          .restart = ns(s.restart_s),
          .reload = ns(s.reload_s),
          .startup = ns(s.startup_s),
          .local_interval = s.local.interval_steps,
          .local_blocking = ns(s.local.blocking_s),
          .local_reload = ns(s.local.reload_s),
          .verify = ns(s.silent.verify_s)};
}

std::int64_t undisturbed_ns(const RunClock& clock) {
  const std::int64_t saves = clock.steps / clock.interval + 1;
  const std::int64_t local_saves = clock.local_interval > 0 ? clock.steps / clock.local_interval : 0;
  return clock.steps * clock.step + saves * (clock.blocking + clock.verify) +
         local_saves * (clock.local_blocking + clock.verify) + clock.persist + clock.restart + clock.startup;
}

}  // namespace wt::detail
