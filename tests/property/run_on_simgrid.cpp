// Runs as work on a SimGrid host that fails: what SimGrid decides is what the arithmetic says.
#include <catch2/catch.hpp>

#include "sim/months/simulate_run.hpp"
#include "tests/fixtures/run_scenarios.hpp"
#include "tests/fixtures/stepped_runs.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// SimGrid's clock is in seconds, a double: each wait rounds to less than a nanosecond in 90 days (163 ns in all at
/// worst).
constexpr std::int64_t kRounding_ns = 1000;

}  // namespace

TEST_CASE("a run jumps as it goes on SimGrid: failures, saves, restarts, stops, waiting for spares") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const RunOutcome run = simulate_run(busy(), seed);
    CHECK(run.failures > 5);
    check_equal(run, simulate_run_on_simgrid(busy(), seed), kRounding_ns);
  }
  RunScenario slow = busier();
  slow.persist_s = 400;  // longer than the interval: saves wait
  for (const bool exchanged : {false, true}) {
    slow.stragglers.exchanged = exchanged;
    check_equal(simulate_run(slow, 1), simulate_run_on_simgrid(slow, 1), kRounding_ns);
  }
}

TEST_CASE("and so in scenarios drawn at random") {
  RandomRuns runs;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RunScenario s = runs.next();
    INFO("seed " << seed);
    check_equal(simulate_run(s, seed), simulate_run_on_simgrid(s, seed), kRounding_ns);
  }
}
