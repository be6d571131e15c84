#include "sim/run/simulate_run.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>

#include "configs/spec/error.hpp"

namespace wt {
namespace {

using detail::kNever;

constexpr double kLongest_s = 2.2e9;  // 70 years: sums stay below the 73 years of kNever

std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }

/// SplitMix64 (Steele, Lea, Flood 2014): unrelated seeds from consecutive numbers.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Draws by inversion: the standard library's distributions differ between implementations, its engines do not.
class Draw {
 public:
  Draw(double mean_s, double shape, std::uint64_t seed)
      : never_(mean_s <= 0), inverse_shape_(1 / shape), scale_ns_(mean_s * 1e9 / std::tgamma(1 + 1 / shape)) {
    if (!never_) engine_.seed(seed);
  }
  std::int64_t operator()() {
    if (never_) return kNever;
    const double u = static_cast<double>(engine_() >> 11) * 0x1p-53;
    const double e = -std::log1p(-u);
    const double t = scale_ns_ * (inverse_shape_ == 1 ? e : std::pow(e, inverse_shape_));
    return t < static_cast<double>(kNever) ? std::llround(t) : kNever;
  }

 private:
  bool never_;
  double inverse_shape_, scale_ns_;
  std::mt19937_64 engine_;
};

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
  time("steps x step_s x stragglers.factor", static_cast<double>(s.steps) * s.step_s * s.stragglers.factor);
  time("steps x blocking_s / interval_steps",
       (static_cast<double>(s.steps) / static_cast<double>(s.interval_steps) + 2) * (s.blocking_s + s.persist_s));
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

/// Failed nodes on their way back; the job may run while no more of them are away than there are spares.
class Spares {
 public:
  Spares(std::int64_t spares, std::int64_t repair) : spares_(spares), repair_(repair) {}
  /// Waiting time of a job that lost a node at `failed` and is otherwise ready at `ready`.
  std::int64_t wait(std::int64_t failed, std::int64_t ready) {
    if (spares_ < 0) return 0;
    back_.push_back(failed + repair_);
    while (!back_.empty() && back_.front() <= ready) back_.pop_front();
    const auto away = static_cast<std::int64_t>(back_.size());
    return away <= spares_ ? 0 : back_[static_cast<std::size_t>(away - spares_ - 1)] - ready;
  }

 private:
  std::int64_t spares_, repair_;
  std::deque<std::int64_t> back_;  ///< in order, as all repairs take equally long
};

/// Slow nodes in the running time of the job. Phases may overlap; all last equally long, so that they end in order.
class Stragglers {
 public:
  Stragglers(const StragglerLaw& law, std::uint64_t seed)
      : gap_(law.mean_s, 1.0, seed), duration_(ns(law.duration_s)), exchanged_(law.exchanged), onset_(gap_()) {}

  detail::Health at(std::int64_t time) {
    if (!exchanged_)
      while (onset_ + duration_ <= time) next(onset_);
    if (time < onset_) return {false, onset_};
    return {true, exchanged_ ? kNever : onset_ + duration_};
  }
  /// When the next slow node is found, if found ones are exchanged.
  std::int64_t found() const { return exchanged_ ? onset_ + duration_ : kNever; }
  void exchange(std::int64_t time) { next(time); }
  /// Nodes that became slow before `time`; others in a phase that ends with an exchange do not count.
  std::int64_t count(std::int64_t time) {
    at(time);
    return before_ + (onset_ < time);
  }

 private:
  void next(std::int64_t from) {
    onset_ = std::min(from + gap_(), kNever);
    ++before_;
  }
  Draw gap_;
  std::int64_t duration_;
  bool exchanged_;
  std::int64_t onset_, before_ = 0;
};

RunOutcome run(const RunScenario& s, std::uint64_t seed, detail::UptimeModel uptime) {
  const detail::RunClock clock{s.steps,          s.interval_steps, ns(s.step_s),
                               ns(s.blocking_s), ns(s.persist_s),  ns(s.restart_s),
                               ns(s.reload_s),   ns(s.startup_s),  ns(s.step_s * s.stragglers.factor)};
  const std::int64_t saves = s.steps / s.interval_steps + 1;
  const std::int64_t undisturbed =
      s.steps * clock.step + saves * clock.blocking + clock.persist + clock.restart + clock.startup;
  const std::int64_t give_up = s.wall_limit_s > 0 ? ns(s.wall_limit_s) : std::min(kNever / 50, undisturbed) * 50;
  Draw failure(s.failures.mean_s, s.failures.shape, seed), planned(s.planned_mean_s, 1.0, mix(seed));
  Stragglers stragglers(s.stragglers, mix(mix(seed)));
  Spares spares(s.spares, ns(s.repair_s));
  const std::int64_t window_every = ns(s.maintenance_every_s);

  RunOutcome out;
  const auto spend = [&](Bucket bucket, std::int64_t time) {
    out.buckets_ns[static_cast<std::size_t>(bucket)] += time;
    out.wall_ns += time;
  };
  std::int64_t step = 0, ran = 0, window = window_every > 0 ? window_every : kNever;  // the next one, wall time
  const detail::HealthAt health = [&](std::int64_t time) {
    detail::Health h = stragglers.at(ran + time);
    if (h.until < kNever) h.until -= ran;
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
    const detail::Uptime up = uptime(clock, step, first, failure(), std::min({stop, to_window, to_found}), health);
    for (std::size_t b = 0; b < kBuckets; ++b) out.buckets_ns[b] += up.spent[b];
    out.wall_ns += up.length;
    ran += up.length;
    step = up.secured;
    out.stragglers = stragglers.count(ran);
    if (up.how == detail::UptimeEnd::finished) {
      out.finished = true;
      return out;
    }
    if (stragglers.found() <= ran) stragglers.exchange(ran);  // whatever the stop is for
    if (up.how == detail::UptimeEnd::failed) {
      ++out.failures;
      recover(ns(s.detect_s) + ns(s.reschedule_s));
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
  return run(scenario, seed, detail::jump_uptime);
}

RunOutcome simulate_run_stepping(const RunScenario& scenario, std::uint64_t seed) {
  check(scenario);
  return run(scenario, seed, detail::step_uptime);
}

RunDistribution simulate_runs(const RunScenario& scenario, std::int64_t n, std::uint64_t seed) {
  check(scenario);
  if (n < 1) throw_error(Code::usage, "simulated runs: found {}, needs at least 1", n);
  RunDistribution out;
  out.runs = n;
  std::vector<double> goodputs;
  for (std::int64_t i = 0; i < n; ++i) {
    const RunOutcome one = run(scenario, mix(seed + mix(static_cast<std::uint64_t>(i))), detail::jump_uptime);
    out.finished += one.finished;
    out.wall_s.push_back(one.wall_s());
    goodputs.push_back(one.goodput());
    for (std::size_t b = 0; b < kBuckets; ++b) out.bucket_mean_s[b] += static_cast<double>(one.buckets_ns[b]) * 1e-9;
    out.failures += static_cast<double>(one.failures);
    out.planned_stops += static_cast<double>(one.planned_stops);
    out.stragglers += static_cast<double>(one.stragglers);
  }
  const double runs = static_cast<double>(n);
  for (double& mean : out.bucket_mean_s) mean /= runs;
  out.failures /= runs;
  out.planned_stops /= runs;
  out.stragglers /= runs;
  std::sort(out.wall_s.begin(), out.wall_s.end());
  std::sort(goodputs.begin(), goodputs.end());
  // Nearest rank: the least value that at least this share of the runs does not exceed.
  const auto rank = [&](double q) { return static_cast<std::size_t>(std::max(0.0, std::ceil(q * runs) - 1)); };
  out.p50_s = out.wall_s[rank(0.50)];
  out.p90_s = out.wall_s[rank(0.90)];
  out.p95_s = out.wall_s[rank(0.95)];
  out.goodput_p05 = goodputs[rank(0.05)];
  out.mean_s = std::accumulate(out.wall_s.begin(), out.wall_s.end(), 0.0) / runs;
  out.goodput = std::accumulate(goodputs.begin(), goodputs.end(), 0.0) / runs;
  return out;
}

}  // namespace wt
