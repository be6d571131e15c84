#include "sim/run/simulate_run.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>

#include "configs/spec/error.hpp"

namespace wt {
namespace {

constexpr double kLongest_s = 2.2e9;  // 70 years: sums stay below the 73 years of detail::kNever

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
    if (never_) return detail::kNever;
    const double u = static_cast<double>(engine_() >> 11) * 0x1p-53;
    const double e = -std::log1p(-u);
    const double t = scale_ns_ * (inverse_shape_ == 1 ? e : std::pow(e, inverse_shape_));
    return t < static_cast<double>(detail::kNever) ? std::llround(t) : detail::kNever;
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
  time("steps x step_s", static_cast<double>(s.steps) * s.step_s);
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
  time("repair_s", s.repair_s);
  time("wall_limit_s", s.wall_limit_s);
  if (ns(s.step_s) < 1)
    throw_error(Code::usage, "run scenario: step_s: found {}, needs at least a nanosecond", s.step_s);
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

RunOutcome run(const RunScenario& s, std::uint64_t seed, detail::UptimeModel uptime) {
  const detail::RunClock clock{s.steps,         s.interval_steps, ns(s.step_s),   ns(s.blocking_s),
                               ns(s.persist_s), ns(s.restart_s),  ns(s.reload_s), ns(s.startup_s)};
  const std::int64_t saves = s.steps / s.interval_steps + 1;
  const std::int64_t undisturbed =
      s.steps * clock.step + saves * clock.blocking + clock.persist + clock.restart + clock.startup;
  const std::int64_t give_up =
      s.wall_limit_s > 0 ? ns(s.wall_limit_s) : std::min(detail::kNever / 50, undisturbed) * 50;
  Draw failure(s.failures.mean_s, s.failures.shape, seed), planned(s.planned_mean_s, 1.0, mix(seed));
  Spares spares(s.spares, ns(s.repair_s));

  RunOutcome out;
  const auto spend = [&](Bucket bucket, std::int64_t time) {
    out.buckets_ns[static_cast<std::size_t>(bucket)] += time;
    out.wall_ns += time;
  };
  std::int64_t step = 0;
  for (bool first = true;; first = false) {
    const detail::Uptime up = uptime(clock, step, first, failure(), planned());
    for (std::size_t b = 0; b < kBuckets; ++b) out.buckets_ns[b] += up.spent[b];
    out.wall_ns += up.length;
    step = up.secured;
    if (up.how == detail::UptimeEnd::finished) {
      out.finished = true;
      return out;
    }
    if (up.how == detail::UptimeEnd::planned) {
      ++out.planned_stops;
      spend(Bucket::custom_events, ns(s.planned_stop_s));
    } else {
      ++out.failures;
      const std::int64_t down = ns(s.detect_s) + ns(s.reschedule_s);
      spend(Bucket::infrastructure_recovery, down + spares.wait(out.wall_ns, out.wall_ns + down));
    }
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
  }
  const double runs = static_cast<double>(n);
  for (double& mean : out.bucket_mean_s) mean /= runs;
  out.failures /= runs;
  out.planned_stops /= runs;
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
