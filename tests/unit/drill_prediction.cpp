// Simulated months of the drill's own scenarios, by the recoveries that a drill measured.
#include "planner/experiments/drill_prediction.hpp"

#include <catch2/catch.hpp>

using namespace wt;

namespace {

SimulatedScenario simulated(const std::string& name) {
  const DrillInput input = read_drill_input(name);
  return simulate_drill(input, read_measured_recovery(input.run.name));
}

double typical_s(const SourcedTime& time) { return time.median > 0 ? time.median : time.value; }

}  // namespace

TEST_CASE("without-replica: no step is lost, and nothing is loaded") {
  const SimulatedScenario out = simulated("without-replica");
  const MeasuredRecovery m = read_measured_recovery("tiny-moe");
  REQUIRE(out.strikes.size() == 1);
  const SimulatedStrike& s = out.strikes[0];
  CHECK(s.restarts == 1);
  CHECK(s.steps_lost == 0);
  CHECK((s.start_s == 0 && s.load_s == 0));
  CHECK(s.down_s == Approx(typical_s(m.times.detect_s) + typical_s(m.times.reschedule_s)));
  CHECK(s.slower_s == Approx(6 * m.step_s));  // steps 7 to 12: all four microbatches, in place of two
  CHECK(s.first_step_s == Approx(2 * m.step_s));
  CHECK(total_recovery_s(out) == Approx(s.down_s + 2 * m.step_s));
}
