// Random scenarios can happen in their run, strike with every kind, and read back from their own files.
#include <catch2/catch.hpp>
#include <set>

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "planner/experiments/random_scenario.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;

namespace {

const StepPlaces kPlaces{
    {"mb0.L0.attn.fwd", "mb0.L1.attn.fwd", "mb0.L1.dispatch.fwd", "mb0.L1.experts.bwd", "optimizer"},
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
  std::set<FaultDomain> domains;
  std::set<Recovery> recoveries;
  std::set<FileDamage> damages;
  std::set<CopyLevel> levels;
  std::set<TensorKind> tensors;
  std::set<std::size_t> counts;
  std::set<int> generations, repeats;
  for (std::int64_t number = 0; number < 1000; ++number) {
    RunSpec run = run_of_4(number % 3 == 0 ? 0 : 4);
    if (number % 4 == 3) run.resilience.local.interval = 2, run.resilience.verify_interval = 1;
    const Scenario drawn = random_scenario(run, kPlaces, 7, number);
    const std::string text = scenario_to_yaml(drawn);
    INFO(text);
    REQUIRE_NOTHROW(check_drill(drawn, run, kPlaces.op_ids, kPlaces.collectives));
    const Scenario again = reread(text);
    CHECK(scenario_to_yaml(again) == text);
    REQUIRE(again.events.size() == drawn.events.size());
    for (std::size_t i = 0; i < drawn.events.size(); ++i) {
      const FaultEvent &a = drawn.events[i], &b = again.events[i];
      kinds.insert(a.what.kind), generations.insert(a.generation), domains.insert(a.who.domain);
      repeats.insert(a.repeats);
      if (a.what.kind == FaultKind::damage) damages.insert(a.what.damage), levels.insert(a.what.level);
      if (a.what.kind == FaultKind::corrupt) tensors.insert(a.what.tensor);
      CHECK((a.what.kind == b.what.kind && a.who.domain == b.who.domain && a.who.index == b.who.index));
      CHECK((a.when.step == b.when.step && a.when.op == b.when.op && a.when.phase == b.when.phase));
      CHECK((a.when.place == b.when.place && a.when.after == b.when.after && a.generation == b.generation));
      CHECK((a.what.bit == b.what.bit && a.what.element == b.what.element && a.what.bytes == b.what.bytes));
      CHECK((a.lasts_s == b.lasts_s && a.what.factor == b.what.factor && a.what.signal == b.what.signal));
    }
    counts.insert(drawn.events.size());
    recoveries.insert(drawn.policy.on_loss.begin(), drawn.policy.on_loss.end());
  }
  CHECK(kinds.size() == 13);
  CHECK(domains.size() == 8);  // all but leaf and rail, which are simulated alone
  CHECK(recoveries.size() == 5);
  CHECK(damages.size() == 7);
  CHECK(levels == std::set{CopyLevel::storage, CopyLevel::local});
  CHECK(tensors.size() == 4);
  CHECK(repeats == std::set{1, 2});
  CHECK((counts.contains(1) && counts.contains(3)));
  CHECK((generations.contains(0) && generations.contains(1) && generations.contains(2)));
}

TEST_CASE("no event waits for a step or a generation that an earlier one forestalls") {
  for (std::int64_t number = 0; number < 1000; ++number) {
    const Scenario drawn = random_scenario(run_of_4(4), kPlaces, 11, number);
    INFO(scenario_to_yaml(drawn));
    int generation = 0;
    std::int64_t saved = 0;  // the newest step that the ranks may go on after
    bool alone = true;       // in its generation so far
    for (const FaultEvent& e : drawn.events) {
      REQUIRE(e.generation >= generation);
      if (e.generation > generation) alone = true, generation = e.generation;
      using Place = FaultTime::Place;
      if (e.when.place == Place::restart || e.when.place == Place::reload)
        CHECK(alone);
      else
        CHECK(e.when.step > saved);
      alone = false;
      if (e.what.kind == FaultKind::maintenance) saved = e.when.step;
      if (e.when.place == Place::manifest || (e.when.place == Place::checkpoint && e.when.after == 1))
        saved = e.when.step;
      generation += e.repeats - 1;
    }
  }
}

TEST_CASE("no event zeroes moments before the first step, where they are zero") {
  int zeroed = 0;
  for (std::int64_t number = 0; number < 1000; ++number) {
    const Scenario drawn = random_scenario(run_of_4(4), kPlaces, 1, number);
    INFO(scenario_to_yaml(drawn));
    for (const FaultEvent& e : drawn.events)
      if (e.what.kind == FaultKind::corrupt && e.what.tensor == TensorKind::moment && !e.what.bit) {
        ++zeroed;
        CHECK(e.when.step > 1);
      }
  }
  CHECK(zeroed > 0);
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
