// Random scenarios can happen in their run, strike with every kind, and read back from their own files.
#include <catch2/catch.hpp>
#include <set>

#include "configs/spec/run.hpp"
#include "configs/spec/scenario.hpp"
#include "planner/experiments/random_scenario.hpp"
#include "tests/support/temp_directory.hpp"

using namespace wt;

namespace {

const StepPlaces kPlaces{{"mb0.L0.attn.fwd", "mb0.L1.dispatch.fwd", "mb0.L1.experts.bwd", "optimizer"},
                         {"mb0.L1.dispatch.fwd"}};

RunSpec run_of_4(std::int64_t save_interval) {
  RunSpec run;
  run.name = "four";
  run.model.layers = 2;
  run.layout.replicate = run.layout.shard = 2;
  run.steps = 12, run.save_interval = save_interval;
  return run;
}

Scenario reread(const std::string& text) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "s.yaml", text);
  return read_scenario_file(folder / "s.yaml");
}

}  // namespace

TEST_CASE("1,000 random scenarios: all possible, all kinds, all read back as they were") {
  std::set<FaultKind> kinds;
  std::set<std::size_t> counts;
  std::set<int> generations;
  for (std::int64_t number = 0; number < 1000; ++number) {
    const RunSpec run = run_of_4(number % 3 == 0 ? 0 : 4);
    const Scenario drawn = random_scenario(run, kPlaces, 7, number);
    const std::string text = scenario_to_yaml(drawn);
    INFO(text);
    REQUIRE_NOTHROW(check_drill(drawn, run, kPlaces.op_ids, kPlaces.collectives));
    const Scenario again = reread(text);
    CHECK(scenario_to_yaml(again) == text);
    REQUIRE(again.events.size() == drawn.events.size());
    for (std::size_t i = 0; i < drawn.events.size(); ++i) {
      const FaultEvent &a = drawn.events[i], &b = again.events[i];
      kinds.insert(a.what.kind), generations.insert(a.generation);
      CHECK((a.what.kind == b.what.kind && a.who.domain == b.who.domain && a.who.index == b.who.index));
      CHECK((a.when.step == b.when.step && a.when.op == b.when.op && a.when.phase == b.when.phase));
      CHECK((a.when.place == b.when.place && a.when.after == b.when.after && a.generation == b.generation));
      CHECK((a.what.bit == b.what.bit && a.what.element == b.what.element && a.what.bytes == b.what.bytes));
      CHECK((a.lasts_s == b.lasts_s && a.what.factor == b.what.factor && a.what.signal == b.what.signal));
    }
    counts.insert(drawn.events.size());
  }
  CHECK(kinds.size() == 13);
  CHECK((counts.contains(1) && counts.contains(3)));
  CHECK((generations.contains(0) && generations.contains(1) && generations.contains(2)));
}

TEST_CASE("the same seed and number give the same scenario, others another") {
  const RunSpec run = run_of_4(4);
  const auto drawn = [&](std::uint64_t seed, std::int64_t number) {
    return scenario_to_yaml(random_scenario(run, kPlaces, seed, number));
  };
  CHECK(drawn(1, 5) == drawn(1, 5));
  CHECK(drawn(1, 5) != drawn(1, 6));
  CHECK(drawn(1, 5) != drawn(2, 5));
}
