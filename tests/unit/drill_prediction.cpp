// Simulated months of the drill's own scenarios, by the recoveries that a drill measured.
#include "planner/experiments/drill_prediction.hpp"

#include <catch2/catch.hpp>

using namespace wt;

namespace {

SimulatedScenario simulated(const std::string& name, const MeasuredRecovery& measured) {
  return simulate_drill(read_drill_input(name), measured);
}

SimulatedScenario simulated(const std::string& name) {
  return simulated(name, read_measured_recovery(read_drill_input(name).run.name));
}

double typical_s(const SourcedTime& time) { return time.median > 0 ? time.median : time.value; }

}  // namespace

TEST_CASE("without-replica: no step is lost, and nothing is loaded") {
  const SimulatedScenario out = simulated("without-replica");
  const MeasuredRecovery m = read_measured_recovery("tiny-moe");
  REQUIRE(out.faults.size() == 1);
  const SimulatedFault& s = out.faults[0];
  CHECK(s.restarts == 1);
  CHECK(s.steps_lost == 0);
  CHECK((s.start_s == 0 && s.load_s == 0));
  CHECK(s.down_s == Approx(typical_s(m.times.detect_s) + typical_s(m.times.reschedule_s)));
  CHECK(s.slower_s == Approx(6 * m.step_s));  // steps 7 to 12: all four microbatches, in place of two
  CHECK(s.first_step_s == Approx(2 * m.step_s));
  CHECK(total_recovery_s(out) == Approx(s.down_s + 2 * m.step_s));
}

TEST_CASE("maintenance: notice, save, end, start of another launch and load, and no step is lost") {
  MeasuredRecovery m = read_measured_recovery("tiny-moe");
  m.notice_s = 1.5, m.relaunch_s = 2.5;
  for (const char* name : {"maintenance", "preemption"}) {
    const SimulatedScenario out = simulated(name, m);
    REQUIRE(out.faults.size() == 1);
    const SimulatedFault& s = out.faults[0];
    CHECK(s.restarts == 1);
    CHECK(s.steps_lost == 0);
    CHECK(s.replay_s == 0);
    CHECK(s.planned_s == Approx(1.5));
    CHECK(s.start_s == Approx(2.5 + m.first_step_s));
    CHECK(s.load_s == Approx(typical_s(m.times.reload_s)));
    CHECK(total_recovery_s(out) == Approx(1.5 + s.start_s + s.load_s + m.step_s));
  }
  // A launch that ended otherwise starts as slowly; its agent stops nobody.
  CHECK(simulated("agent-lost", m).faults.at(0).start_s == Approx(2.5 + m.first_step_s));
  CHECK(simulated("kill", m).faults.at(0).start_s == Approx(typical_s(m.times.restart_s) + m.first_step_s));
}

TEST_CASE("damaged files, failed saves and corrupted numbers: the steps that each drill loses") {
  const auto lost = [](const char* name) {
    std::int64_t steps = 0;
    for (const SimulatedFault& s : simulated(name).faults) steps += s.steps_lost;
    return steps;
  };
  CHECK(lost("flipped-bit") == 5);  // saved after step 4 and 8, struck in step 10
  CHECK(lost("old-manifest") == 5);
  CHECK(lost("stale-latest") == 1);
  CHECK(lost("moment-found") == 2);  // found at the end of step 6, copied after step 4
  CHECK(lost("gradient-bit") == 1);  // not finite in step 6
  // The months live through a wrong number, and repeat a gradient in place: nobody stops.
  for (const char* nobody : {"moment-bit", "weight-bit", "gradient-lost", "gradient-repeated", "activation-lost"}) {
    const SimulatedScenario out = simulated(nobody);
    CHECK(out.run.finished);
    CHECK(out.run.wall_ns == out.undisturbed.wall_ns);
    CHECK(total_recovery_s(out) == 0);
  }
  CHECK(lost("kill-in-save") == 4);
  CHECK(lost("peer-copy") == 1);  // copied after step 6, struck in step 8
  CHECK(lost("kill-before-latest") == 0);
  CHECK(lost("disk-full") == 8);  // the save of step 8 is none, which the one of step 12 finds
}

TEST_CASE("a failed last save costs the steps since the one before, or since the copies in memory") {
  const DrillInput last = read_drill_input("last-save-fails");
  MeasuredRecovery m = read_measured_recovery(last.run.name);
  const SimulatedScenario copied = simulate_drill(last, m);
  REQUIRE(copied.faults.size() == 1);
  CHECK(copied.faults[0].restarts == 1);
  CHECK(copied.faults[0].steps_lost == 2);  // copied after step 10 of 12
  DrillInput stored = last;
  stored.run.resilience.local = {};
  CHECK(simulate_drill(stored, m).faults.at(0).steps_lost == 4);  // saved after step 8
}

TEST_CASE("kill-in-reload: two recoveries, and the lost steps are done again once") {
  const MeasuredRecovery m = read_measured_recovery("tiny-moe");
  const SimulatedScenario out = simulated("kill-in-reload", m);
  REQUIRE(out.faults.size() == 2);
  const double down_s = typical_s(m.times.detect_s) + typical_s(m.times.reschedule_s),
               start_s = typical_s(m.times.restart_s), load_s = typical_s(m.times.reload_s);
  CHECK(total_recovery_s(out) == Approx(2 * (down_s + start_s) + 1.5 * load_s + m.first_step_s + 2 * m.step_s));
}

TEST_CASE("a recovery that another fault cuts short counts from its strike to the end of the next one") {
  const RecoveryPhases phases{.detect_s = 7, .stop_s = 1, .start_s = 2, .load_s = 3, .first_step_s = 4, .replay_s = 5};
  DrillRestart cut, whole;
  cut.fault_unix_s = 100, cut.detected_unix_s = 102;
  whole.fault_unix_s = 103, whole.detected_unix_s = 110, whole.phases = phases;
  CHECK(total_recovery_s(std::vector{cut, whole}) == 10 + 15);
  CHECK(total_recovery_s(std::vector{whole}) == 7 + 15);
  whole.fault_unix_s.reset();
  CHECK(total_recovery_s(std::vector{whole}) == 15);
  CHECK(total_recovery_s(std::vector{cut}) == 0);
}
