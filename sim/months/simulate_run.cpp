#include "sim/months/simulate_run.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"
#include "sim/months/fault_trace.hpp"
#include "sim/months/run_clock.hpp"
#include "sim/months/run_events.hpp"
#include "sim/months/uptime.hpp"

namespace wt {
namespace {

using namespace detail;

/// A run as a sequence of uptimes and downtimes. Each kind of event has a seed of its own.
class Run {
 public:
  Run(const RunScenario& s, std::uint64_t seed, const RunExecution& execution)
      : scenario_(s),
        execution_(execution),
        clock_(run_clock(s)),
        give_up_(s.wall_limit_s > 0 ? ns(s.wall_limit_s) : std::min(kNever / 50, undisturbed_ns(clock_)) * 50),
        slow_step_(ns(s.step_s * s.stragglers.factor)),
        tolerant_(s.tolerance.replicas > 0),
        seeds_(seed),
        nodes_(s.failures, seeds_.failures),
        failure_(tolerant_ || nodes_.any() ? 0 : s.failures.mean_s, s.failures.shape, seeds_.failures),
        planned_(s.planned_mean_s, 1.0, seeds_.planned),
        silent_(s.silent.mean_s, 1.0, seeds_.silent),
        stragglers_(s.stragglers, seeds_.stragglers),
        survives_(s.local.interval_steps > 0 ? s.local.survival : 0, seeds_.survival),
        spares_(s.spares, ns(s.repair_s)),
        replicas_(s.tolerance, Draw(tolerant_ ? s.failures.mean_s : 0, s.failures.shape, seeds_.failures), spares_),
        window_(s.maintenance_every_s > 0 ? ns(s.maintenance_every_s) : kNever) {}
  Run(const Run&) = delete;  // replicas_ refers to spares_
  Run& operator=(const Run&) = delete;

  RunOutcome outcome() {
    for (bool first = true;; first = false) {
      const Stops stops = next_stops();
      const UptimeEnd how = train(first, stops);
      if (how == UptimeEnd::finished) {
        out_.finished = true;
        return out_;
      }
      if (stragglers_.found() <= ran_) stragglers_.exchange(ran_);  // at a stop for any reason
      stand_still(how, stops);
      if (out_.wall_ns >= window_) maintain();
      if (out_.wall_ns >= give_up_) return out_;
    }
  }

 private:
  struct Seeds {
    explicit Seeds(std::uint64_t seed)
        : failures(seed),
          planned(splitmix64(failures)),
          stragglers(splitmix64(planned)),
          silent(splitmix64(stragglers)),
          survival(splitmix64(silent)),
          recovery(splitmix64(survival)) {}
    std::uint64_t failures, planned, stragglers, silent, survival, recovery;
  };

  /// Running time until each kind of planned stop.
  struct Stops {
    std::int64_t planned, window, found;
    std::int64_t first() const { return std::min({planned, window, found}); }
  };

  Stops next_stops() {
    return {.planned = planned_(),
            .window = window_ < kNever ? window_ - out_.wall_ns : kNever,
            .found = stragglers_.found() < kNever ? stragglers_.found() - ran_ : kNever};
  }

  UptimeEnd train(bool first, const Stops& stops) {
    const HealthAt health = [this](std::int64_t time) {
      const Stragglers::Phase phase = stragglers_.at(ran_ + time);
      Health h{phase.slow ? slow_step_ : clock_.step, phase.until < kNever ? phase.until - ran_ : kNever};
      if (tolerant_) replicas_.at(time, h);
      return h;
    };
    const Events events{nodes_.any() ? nodes_.next() - ran_ : failure_(), stops.first(), silent_(), !survives_()};
    replicas_.restart(out_.wall_ns);
    RunClock clock = clock_;
    clock.restart = drawn(scenario_.restart_s, scenario_.spread.restart, TraceDraw::restart);
    clock.reload = drawn(scenario_.reload_s, scenario_.spread.reload, TraceDraw::reload);
    const Uptime up = execution_.uptime(clock, saved_, first, events, health);
    ++uptimes_;
    for (std::size_t b = 0; b < kBuckets; ++b) out_.buckets_ns[b] += up.spent[b];
    out_.wall_ns += up.length;
    ran_ += up.length;
    saved_ = up.saved;
    out_.stragglers = stragglers_.count(ran_);
    out_.failures += replicas_.lost(up.length);
    return up.how;
  }

  /// The downtime after an uptime: its cause is `how`, or the first of the planned stops.
  void stand_still(UptimeEnd how, const Stops& stops) {
    if (how == UptimeEnd::failed) {
      fail();
    } else if (how == UptimeEnd::corrupted) {
      ++out_.silent_errors;
      recover(reschedule());
    } else if (stops.found <= std::min(stops.planned, stops.window)) {
      recover(reschedule());
    } else if (stops.planned < stops.window) {
      ++out_.planned_stops;
      spend(Bucket::custom_events, ns(scenario_.planned_stop_s));
    } else {
      maintain();
    }
  }

  void fail() {
    const std::int64_t down = drawn(scenario_.detect_s, scenario_.spread.detect, TraceDraw::detect) + reschedule();
    if (tolerant_) {  // losses are counted already, and spares assigned: all replicas come back together
      spend(Bucket::infrastructure_recovery, std::max(down, replicas_.all_back() - out_.wall_ns));
    } else {
      ++out_.failures;
      if (nodes_.any()) nodes_.replace();
      recover(down);
    }
  }

  /// A time of the recovery after this uptime.
  std::int64_t drawn(double mean_s, double sigma, TraceDraw draw) const {
    return lognormal_ns(mean_s, sigma, splitmix64(seeds_.recovery + uptimes_), draw);
  }
  std::int64_t reschedule() const {
    return drawn(scenario_.reschedule_s, scenario_.spread.reschedule, TraceDraw::reschedule);
  }

  void recover(std::int64_t down) {
    spend(Bucket::infrastructure_recovery, down + spares_.wait(out_.wall_ns, out_.wall_ns + down));
  }

  void maintain() {
    ++out_.planned_stops;
    spend(Bucket::custom_events, ns(scenario_.maintenance_s));
    const std::int64_t every = ns(scenario_.maintenance_every_s);
    window_ = (out_.wall_ns / every + 1) * every;
  }

  void spend(Bucket bucket, std::int64_t time) {
    out_.buckets_ns[static_cast<std::size_t>(bucket)] += time;
    out_.wall_ns += time;
    execution_.down(time);
  }

  const RunScenario& scenario_;
  const RunExecution& execution_;
  const RunClock clock_;
  const std::int64_t give_up_, slow_step_;
  const bool tolerant_;
  const Seeds seeds_;
  NodeFailures nodes_;
  Draw failure_, planned_, silent_;
  Stragglers stragglers_;
  Chance survives_;
  Spares spares_;
  Replicas replicas_;
  RunOutcome out_;
  Saved saved_;
  std::int64_t ran_ = 0;
  std::uint64_t uptimes_ = 0;
  std::int64_t window_;  ///< wall time of the next window
};

}  // namespace

double replica_step_factor(std::int64_t replicas, std::int64_t alive, std::int64_t microbatches) {
  if (microbatches <= 0) return as_double(replicas) / as_double(alive);
  return as_double(ceil_div(replicas * microbatches, alive)) / as_double(microbatches);
}

RunOutcome simulate_run(const RunScenario& scenario, std::uint64_t seed) {
  return detail::simulate_run_by({detail::jump_uptime}, scenario, seed);
}

RunOutcome detail::simulate_run_by(const RunExecution& execution, const RunScenario& scenario, std::uint64_t seed) {
  check_scenario(scenario);
  return Run(scenario, seed, execution).outcome();
}

std::uint64_t run_seed(std::uint64_t seed, std::int64_t run) {
  return splitmix64(seed + splitmix64(static_cast<std::uint64_t>(run)));
}

NumberedRun seeded_runs(std::uint64_t seed) {
  return [seed](const RunScenario& scenario, std::int64_t run) { return simulate_run(scenario, run_seed(seed, run)); };
}

RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, std::uint64_t seed) {
  return simulate_runs(scenario, n, seeded_runs(seed));
}

RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, const NumberedRun& one_run) {
  if (n < 1) throw_usage("simulated runs: found {}, needs at least 1", n);
  RunDistribution out;
  out.runs = n;
  std::vector<double> goodputs;
  for (std::int64_t i = 0; i < n; ++i) {
    const RunOutcome one = one_run(scenario, i);
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
