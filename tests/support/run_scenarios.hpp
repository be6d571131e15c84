// Runs of weeks in which much happens, fixed ones and drawn ones, and whether two went alike.
#pragma once
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <random>

#include "sim/months/simulate_run.hpp"

namespace wt::test {

/// Times within `rounding_ns`, all else equal.
inline void check_equal(const RunOutcome& a, const RunOutcome& b, std::int64_t rounding_ns = 0) {
  CHECK(std::abs(a.wall_ns - b.wall_ns) <= rounding_ns);
  for (std::size_t i = 0; i < kBuckets; ++i) {
    INFO(to_string(static_cast<Bucket>(i)));
    CHECK(std::abs(a.buckets_ns[i] - b.buckets_ns[i]) <= rounding_ns);
  }
  CHECK(a.failures == b.failures);
  CHECK(a.planned_stops == b.planned_stops);
  CHECK(a.stragglers == b.stragglers);
  CHECK(a.silent_errors == b.silent_errors);
  CHECK(a.finished == b.finished);
}

inline RunScenario busy() {  // everything happens, in seconds
  RunScenario s;
  s.steps = 20000, s.step_s = 7.3, s.interval_steps = 40;
  s.blocking_s = 11.1, s.persist_s = 90.7, s.startup_s = 21;
  s.failures = {9000, 1.0};
  s.detect_s = 60, s.reschedule_s = 200, s.restart_s = 45.5, s.reload_s = 130;
  s.planned_mean_s = 40000, s.planned_stop_s = 1800;
  s.spares = 2, s.repair_s = 12000;
  return s;
}

inline RunScenario busier() {  // with slow nodes and maintenance
  RunScenario s = busy();
  s.stragglers = {11000, 1.37, 5000};
  s.maintenance_every_s = 30000, s.maintenance_s = 2500;
  return s;
}

/// One after the other, with any mixture of features.
class RandomRuns {
 public:
  RunScenario next() {
    RunScenario s;
    s.steps = static_cast<std::int64_t>(draw(1, 3000)), s.interval_steps = static_cast<std::int64_t>(draw(1, 200));
    s.step_s = draw(0.5, 5), s.blocking_s = maybe(0.1, 20), s.persist_s = maybe(1, 500), s.startup_s = maybe(1, 20);
    s.detect_s = maybe(1, 100), s.reschedule_s = maybe(1, 100), s.restart_s = maybe(1, 100), s.reload_s = maybe(1, 100);
    s.failures = {maybe(100, 1e4), draw(0.5, 2)};
    s.planned_mean_s = maybe(100, 1e4), s.planned_stop_s = draw(1, 100);
    s.stragglers = {maybe(5, 1e4), draw(1, 4), draw(0.1, 3000), drawn_++ % 2 == 0};
    s.maintenance_every_s = maybe(50, 1e4), s.maintenance_s = 0.9 * s.maintenance_every_s * draw(1e-3, 1);
    s.spares = static_cast<std::int64_t>(engine_() % 3) - 1, s.repair_s = draw(10, 3000);
    if (engine_() % 2 == 0) {
      s.local = {static_cast<std::int64_t>(draw(1, 30)), maybe(0.1, 5), maybe(1, 100),
                 static_cast<double>(engine_() % 5) / 4};
      s.interval_steps = s.local.interval_steps * static_cast<std::int64_t>(draw(1, 20));
    }
    s.silent = {maybe(100, 1e4), maybe(0.1, 20)};
    if (engine_() % 2 == 0)
      s.tolerance = {2 + static_cast<std::int64_t>(engine_() % 6), maybe(1, 3000), maybe(0.1, 90)};
    return s;
  }

 private:
  double draw(double low, double high) {  // evenly in the logarithm
    return low * std::pow(high / low, static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  double maybe(double low, double high) { return engine_() % 4 == 0 ? 0 : draw(low, high); }

  std::mt19937_64 engine_{5};
  int drawn_ = 0;
};

}  // namespace wt::test
