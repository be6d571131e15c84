// Runs as work on a SimGrid host that fails: what SimGrid decides is what the arithmetic says.
#include <catch2/catch.hpp>

#include "sim/run/simulate_run.hpp"
#include "tests/support/run_scenarios.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// SimGrid's clock is in seconds, a double: each wait rounds to less than a nanosecond in 90 days (163 ns in all at worst).
constexpr std::int64_t kRounding_ns = 1000;

void check_same(const RunOutcome& run, const RunOutcome& on_simgrid) {
  CHECK(run.finished == on_simgrid.finished);
  CHECK(run.failures == on_simgrid.failures);
  CHECK(run.planned_stops == on_simgrid.planned_stops);
  CHECK(run.stragglers == on_simgrid.stragglers);
  CHECK(run.silent_errors == on_simgrid.silent_errors);
  CHECK(std::abs(run.wall_ns - on_simgrid.wall_ns) < kRounding_ns);
  for (std::size_t b = 0; b < kBuckets; ++b) {
    INFO(to_string(static_cast<Bucket>(b)));
    CHECK(std::abs(run.buckets_ns[b] - on_simgrid.buckets_ns[b]) < kRounding_ns);
  }
}

}  // namespace

TEST_CASE("a run jumps as it goes on SimGrid: failures, saves, restarts, stops, waiting for spares") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const RunOutcome run = simulate_run(busy(), seed);
    CHECK(run.failures > 5);
    check_same(run, simulate_run_on_simgrid(busy(), seed));
  }
  RunScenario slow = busier();
  slow.persist_s = 400;  // longer than the interval: saves wait
  for (const bool exchanged : {false, true}) {
    slow.stragglers.exchanged = exchanged;
    check_same(simulate_run(slow, 1), simulate_run_on_simgrid(slow, 1));
  }
}

TEST_CASE("and so in scenarios drawn at random") {
  RandomRuns runs;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RunScenario s = runs.next();
    INFO("seed " << seed);
    check_same(simulate_run(s, seed), simulate_run_on_simgrid(s, seed));
  }
}
