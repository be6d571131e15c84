// The bars of the demo: a prediction beyond one of them fails it, and the line says which and by how much.
#include "planner/experiments/comparison.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "planner/cli/compare/proof_report.hpp"
#include "planner/cli/demo/demo_report.hpp"
#include "planner/experiments/demo.hpp"

using namespace wt;

namespace {

/// Measured: steps of one second, 0.2 s of them exposed, 100 bytes.
RunComparison compared(double step_s, double exposed_s, double peak_bytes) {
  RunComparison c;
  c.name = "other", c.layout = "1x4";
  c.predicted = {{step_s, exposed_s, peak_bytes}}, c.measured = {{1, 0.2, 100}};
  return c;
}

std::vector<std::string> broken_bars(const std::vector<RunComparison>& comparisons) {
  return judge_demo(comparisons, {}, 2).broken;
}

/// While others took so many of the machine's two cores.
RunComparison beside(double cores, RunComparison c) {
  c.cores_used_by_others = cores;
  return c;
}

DemoResult demo_of(const std::vector<RunComparison>& comparisons) {
  DemoResult demo;
  demo.cores = 2;
  demo.comparisons = comparisons;
  DrillCase exact;
  exact.proofs = {"kill of rank 1 at optimizer of step 6"};
  exact.losses_equal = exact.samples_equal = exact.parameters_equal = exact.optimizer_equal = true;
  demo.drill.cases = {exact};
  return demo;
}

}  // namespace

TEST_CASE("predictions within their bars pass") {
  for (const RunComparison& c : {compared(1.24, 0.34, 104.9), compared(0.76, 0.06, 95.1)}) {
    CHECK(broken_bars({c}).empty());
    CHECK(demo_of({c}).passed());
    CHECK(demo_of({c}).exit_status() == 0);
  }
}

TEST_CASE("each bar that breaks, in either direction, is a line and fails the demo") {
  const std::pair<RunComparison, std::string> cases[] = {
      {compared(1.312, 0.2, 100), "other (1x4): step time is off by +31.2 %, allowed are 25 %: 6.2 points too much"},
      {compared(0.7, 0.2, 100), "other (1x4): step time is off by -30.0 %, allowed are 25 %: 5.0 points too much"},
      {compared(1, 0.04, 100),
       "other (1x4): exposed communication is off by -16.0 %, allowed are 15 %: 1.0 points too much"},
      {compared(1, 0.2, 106), "other (1x4): peak memory is off by +6.0 %, allowed are 5 %: 1.0 points too much"}};
  for (const auto& [c, line] : cases) {
    CHECK(broken_bars({c}) == std::vector<std::string>{line});
    CHECK_FALSE(demo_of({c}).passed());
    CHECK(demo_of({compared(1, 0.2, 100), c}).exit_status() == 1);
  }
  CHECK(broken_bars({compared(2, 0.9, 200)}).size() == 3);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  CHECK(broken_bars({compared(kNaN, 0.2, 100)}).size() == 1);
  CHECK(broken_bars({compared(1, kNaN, 100)}).size() == 1);
  CHECK(broken_bars({compared(1, 0.2, kNaN)}).size() == 1);
}

TEST_CASE("the demo's page is green only where its own predictions held") {
  CHECK(demo_verdict(demo_of({compared(1.1, 0.2, 100)})).status == Status::good);
  const Callout missed = demo_verdict(demo_of({compared(1.312, 0.2, 100), compared(1, 0.2, 106)}));
  CHECK(missed.status == Status::bad);
  CHECK(missed.title == "Predictions of this machine's runs missed 2 bars");
  CHECK_THAT(missed.text, Catch::Contains("step time is off by +31.2 %") && Catch::Contains("peak memory"));
  CHECK(demo_verdict(demo_of({beside(1, compared(0.6, 0.2, 100))})).status == Status::warn);
  DemoResult inexact = demo_of({compared(1, 0.2, 100)});
  inexact.drill.cases.front().differences = {"a tensor differs"};
  CHECK(demo_verdict(inexact).title == "A recovery was not exact");
}

TEST_CASE("a demo fails where nothing was compared, and where a recovery was not exact") {
  RunComparison seen = compared(1, 0.2, 100);
  seen.calibrated_on = true;
  for (const auto& comparisons : {std::vector<RunComparison>{}, {seen}}) {
    CHECK_FALSE(demo_of(comparisons).passed());
    CHECK(demo_of(comparisons).exit_status() == 1);
  }
  DemoResult demo = demo_of({seen, compared(1, 0.2, 100)});
  CHECK(demo.exit_status() == 0);
  demo.drill.cases.push_back(demo.drill.cases.front());
  demo.drill.cases.back().differences = {"a tensor differs"};
  CHECK_FALSE(demo.passed());
  CHECK(demo.exit_status() == 1);
  demo.drill.cases.clear();
  CHECK(demo.exit_status() == 1);
}

TEST_CASE("stages of the demo say what they gave, a run calibrated on as such") {
  RunComparison seen = compared(1, 0.2, 100);
  seen.calibrated_on = true;
  const DemoResult demo = demo_of({seen, compared(1.1, 0.2, 100)});
  CHECK(
      demo_stage(DemoStage::simulate, demo) ==
      "other (1x4): step 1.00 s predicted, 1.00 s measured (+0.0 %); exposed communication off by +0.0 % of the step; "
      "peak "
      "memory +0.00 % [calibrated on]\n"
      "other (1x4): step 1.10 s predicted, 1.00 s measured (+10.0 %); exposed communication off by +0.0 % of the step; "
      "peak memory +0.00 %");
  CHECK(demo_stage(DemoStage::drill, demo) == "1 faults injected, recovery bitwise exact in every case");
}

TEST_CASE("the run that was calibrated on is held to no bar") {
  RunComparison seen = compared(2, 0.9, 200);
  seen.calibrated_on = true;
  CHECK(broken_bars({seen}).empty());
}

TEST_CASE("what predictions were off by is said of runs that were not calibrated on, and of none where none is left") {
  CHECK(error_sentence({compared(1.1, 0.2, 100)}) ==
        "on 1 run it had not seen, step time was off by at most 10.0 %, exposed communication by 0.0 % of the step, "
        "peak tensor memory by 0.00 %");
  RunComparison seen = compared(1.1, 0.2, 100);
  seen.calibrated_on = true;
  const std::string said = comparison_section({seen}).paragraphs.front();
  CHECK_THAT(said, Catch::Contains("every run was part of the calibration") && !Catch::Contains("0 runs"));
}

TEST_CASE("times that other programs disturbed are named and not judged, memory is") {
  const RunComparison late = compared(0.6, 0.02, 100), fat = compared(0.6, 0.2, 120);
  CHECK(judge_demo({beside(0.1, late)}, {}, 2).broken.size() == 2);  // 5 % of two cores
  const DemoJudgement let = judge_demo({beside(0.7, late)}, {}, 2);
  CHECK(let.broken.empty());
  REQUIRE(let.disturbed.size() == 1);
  CHECK(let.disturbed[0] ==
        "other (1x4): step time (-40.0 %) and exposed communication (-18.0 % of the step) are not judged: other "
        "programs took 0.7 of 2 cores while it was measured, allowed are 0.1");
  CHECK(demo_of({beside(0.7, late)}).exit_status() == 0);
  CHECK(judge_demo({beside(0.7, fat)}, {}, 2).broken.size() == 1);
  CHECK(demo_of({beside(0.7, fat)}).exit_status() == 1);
  CHECK(judge_demo({beside(0.7, late)}, {}, 64).broken.size() == 2);  // which is little of 64 cores
}

TEST_CASE("of several runs, those that nothing disturbed are judged") {
  const RunComparison late = compared(0.6, 0.2, 100);
  RunComparison quiet = late;
  quiet.name = "quiet";
  const DemoJudgement judged = judge_demo({beside(1, late), quiet}, {}, 2);
  REQUIRE(judged.broken.size() == 1);
  CHECK_THAT(judged.broken[0], Catch::StartsWith("quiet (1x4): step time"));
  CHECK(judged.disturbed.size() == 1);
  CHECK(demo_of({beside(1, late), quiet}).exit_status() == 1);
}

TEST_CASE("a disturbed calibration disturbs the times of every run") {
  RunComparison seen = compared(1, 0.2, 100);
  seen.calibrated_on = true;
  const RunComparison late = compared(0.6, 0.2, 100);
  const DemoJudgement by_run = judge_demo({beside(0.5, seen), late, late}, {}, 2);
  CHECK(by_run.broken.empty());
  REQUIRE(by_run.disturbed.size() == 2);  // the run that was calibrated on is held to no bar
  CHECK_THAT(by_run.disturbed[0], Catch::Contains("0.5 of 2 cores while what the machine model was calibrated on"));
  Profile suites;
  suites.fingerprint = {{"run.other_busy_cores", "0.08"}, {"run.stolen_cores", "0.04"}};
  CHECK(judge_demo({seen, late}, suites, 2).broken.empty());
  suites.fingerprint["run.stolen_cores"] = "0.01";
  CHECK(judge_demo({seen, late}, suites, 2).broken.size() == 1);
}
