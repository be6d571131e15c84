// The loop measured -> calibrated -> predicted -> compared, once through with real runs: a machine model made of one
// layout's run and this machine's benchmarks meets a layout that it has not seen.
#include <catch2/catch.hpp>
#include <cmath>

#include "planner/cli/compare/proof_report.hpp"
#include "planner/experiments/comparison.hpp"
#include "planner/experiments/demo.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "trainer/process/trainer_process.hpp"

using namespace wt;

TEST_CASE("a model calibrated on one layout predicts another one, op by op") {
  RunSpec calibration = test::with_layout(test::small_run(), 2, 2, 2);
  calibration.layout.microbatch = 4;  // 4 and 2 sequences: both sizes are in its profile
  const RunSpec unseen = test::with_layout(test::small_run(), 1, 4, 2);
  const auto seen_folder = test::trained(calibration), unseen_folder = test::trained(unseen);
  const auto bench = test::scratch("loop") / "bench.json";
  std::filesystem::create_directories(bench.parent_path());
  run_trainer(
      {"bench", "--quick", "--samples", "5", "--run", (seen_folder / "run.yaml").string(), "-o", bench.string()},
      bench.string() + ".log");

  const CalibrationResult result = calibrate({read_profile(bench), read_profile(seen_folder / "profile.json")});
  CHECK(result.model.traits().synchronous_host);
  CHECK(compare_run(calibration, seen_folder, this_machine(4), result.model).same_ops);
  const RunComparison c = compare_run(unseen, unseen_folder, this_machine(4), result.model);
  CHECK(c.same_ops);
  REQUIRE(c.predicted.size() == 4);
  for (const RankFigures& rank : c.predicted) {
    CHECK(std::isfinite(rank.step_s));
    CHECK(rank.step_s > 0);
    CHECK(rank.exposed_s > 0);
    CHECK(rank.exposed_s < rank.step_s);
  }
  // The demo's bar is 5 %; copies in flight given back early leave the measured peak of a run this small lower still.
  CHECK(std::abs(c.peak_error()) < 0.1);
  CHECK(c.evidence_s[static_cast<std::size_t>(Evidence::assumed)] == 0);
  CHECK(comparison_table({c}).rows.size() == 1);
}
