#include "planner/cli/gate/gate_flags.hpp"

#include "configs/base/error.hpp"
#include "configs/base/parsed.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/gate/gate_trees.hpp"

namespace wt {

void GateFlags::add_to(const Command& command) {
  command.flag("--strict", gate.strict, "Benchmarks that cannot be decided give exit status 3");
  command.flag("--allow-missing", gate.allow_missing, "Benchmarks that vanished are no finding");
  command.option("--ignore", gate.ignored_facts, "Fingerprint fact that may differ (repeatable)").one_a_mention();
  command
      .option("--floor", floors,
              "Smallest change that is a finding: a share (default: 3%), a time (5us), or both (repeatable)")
      .one_a_mention();
  command.option("--clock", clock, "Time of Google Benchmark to compare: real, or cpu, that of the benchmark's thread")
      .shows_default();
}

GateOptions GateFlags::options() const {
  GateOptions out = gate;
  for (const std::string& floor : floors) {
    if (!floor.ends_with('%')) {
      out.absolute_floor_s = parse_seconds(floor, "--floor");
      continue;
    }
    const auto percent = parsed<double>(floor.substr(0, floor.size() - 1));
    if (!percent || !(*percent >= 0 && *percent < 100))
      throw_usage("--floor: found '{}', allowed 0% to below 100%, or a time such as 5us", floor);
    out.relative_floor = *percent / 100;
  }
  return out;
}

GoogleBenchmarkClock GateFlags::google_benchmark_clock() const {
  if (clock == "real") return GoogleBenchmarkClock::real;
  if (clock != "cpu") throw_usage("--clock: found '{}', allowed real and cpu", clock);
  return GoogleBenchmarkClock::cpu;
}

std::string GateFlags::words() const {
  std::string line;
  for (const std::string& fact : gate.ignored_facts) line += " --ignore " + shell_word(fact);
  if (gate.strict) line += " --strict";
  if (gate.allow_missing) line += " --allow-missing";
  for (const std::string& floor : floors) line += " --floor " + shell_word(floor);
  if (clock != "real") line += " --clock " + shell_word(clock);
  return line;
}

}  // namespace wt
