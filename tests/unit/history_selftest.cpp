#include "bench/gate/history_selftest.hpp"

#include <catch2/catch.hpp>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;

TEST_CASE("each point that is there is met by one found point at most") {
  const wt::Agreement a = wt::agreement({10, 20, 30}, {9, 11, 36, 100}, 5);
  CHECK(a.expected == 3);
  CHECK(a.found == 4);
  CHECK(a.matched == 1);
  CHECK(a.precision() == Approx(0.25));
  CHECK(a.recall() == Approx(1 / 3.0));
  CHECK(wt::agreement({10}, {15}, 5).matched == 1);
  CHECK(wt::agreement({10}, {16}, 5).matched == 0);
  CHECK(wt::agreement({}, {}, 5).precision() == 1);
}

TEST_CASE("change points meet the aims on the golden series, and the same again with the same seed") {
  wt::HistorySelftestOptions options;
  options.trials = 40;
  const auto run = [&] {
    return wt::history_selftest(wt::default_golden_series(), wt::read_recorded_runs(wt::default_recorded_runs()),
                                options);
  };
  const wt::HistorySelftest result = run();
  CHECK(result.settings_met == 10);
  CHECK(result.counts_met == 4);
  CHECK(result.listed_ours.precision() >= 0.9);
  CHECK(result.listed_ours.recall() >= 0.9);
  CHECK(result.noise.size() == 3);
  wt::Agreement all, library;
  for (const wt::PlantedSteps& row : result.planted) {
    all.add(row.ours);
    library.add(row.library);
  }
  CHECK(all.precision() >= 0.9);
  CHECK(all.recall() >= 0.9);
  CHECK(all.precision() > library.precision());
  CHECK(result.quiet_ours < result.quiet_library);
  REQUIRE(result.recorded_steps.size() == 2);
  for (const wt::RecordedSteps& row : result.recorded_steps) {
    CHECK(row.ours.expected == 564);
    CHECK(row.ours.recall() > 0);
    CHECK(row.quiet_ours.recall() > row.ours.recall());
  }
  const wt::HistorySelftest again = run();
  CHECK(again.planted[3].ours.matched == result.planted[3].ours.matched);
  CHECK(again.planted[3].ours.found == result.planted[3].ours.found);
}

TEST_CASE("a file of other series is refused") {
  const wt::test::TempDirectory folder;
  wt::test::write_bytes(folder / "golden.json", "{\"tigerbeetle\": {\"series\": [1, 2]}}");
  CHECK_THAT(wt::test::usage_error([&] { wt::history_selftest(folder / "golden.json", {}); }), Contains("expected"));
}
