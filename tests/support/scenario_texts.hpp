// Scenarios as texts, and a run of one second a step that they strike.
#pragma once
#include <fstream>
#include <string>

#include "configs/spec/scenario.hpp"
#include "sim/months/simulate_run.hpp"
#include "tests/support/temp_directory.hpp"

namespace wt::test {

inline Scenario scenario_of(const std::string& text) {
  const TempDirectory folder;
  std::ofstream(folder.path() / "s.yaml") << "name: s\n" << text;
  return read_scenario_file(folder.path() / "s.yaml");
}

inline std::string kill_of(const std::string& who, const std::string& when, const std::string& more = "") {
  return "  - {who: " + who + ", when: " + when + ", what: {kind: kill}" + more + "}\n";
}

/// A second a step, saved after every fourth.
inline RunScenario seconds() {
  RunScenario s;
  s.steps = 20, s.step_s = 1, s.interval_steps = 4, s.blocking_s = 0.125;
  s.detect_s = 0.5, s.reschedule_s = 0.25, s.restart_s = 2, s.reload_s = 0.75;
  return s;
}

}  // namespace wt::test
