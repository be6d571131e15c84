// Whether experts move while loads drift: against closed forms.
#include "planner/placement/replacement.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "configs/base/error.hpp"
#include "sim/program/routing/load_windows.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;

namespace {

/// Two pairs of busy experts that take turns every `lasting` windows: {0, 1}, then {0, 2}, on two ranks of two.
LoadWindows turns(int windows, int lasting, std::int64_t steps) {
  LoadWindows out{{}, steps};
  for (int w = 0; w < windows; ++w) {
    std::vector<double> counts{4, 1, 1, 1};
    counts[w / lasting % 2 == 0 ? 1 : 2] = 4;
    out.loads.push_back({"window", {counts}, {}});
  }
  return out;
}

/// A step as long as the fullest rank's load; moves of `move_s`.
ReplacementCosts costs(double move_s) {
  return {[](const LoadScenario& loads, const Placement& p) { return slots_load(loads, p, 1, 2); },
          [move_s](const Placement&, const Placement&) { return move_s; }};
}

}  // namespace

TEST_CASE("loads that stay need no move, and no option is better than the first placement") {
  LoadWindows same = turns(4, 100, 10);
  const ReplacementStudy study = study_replacement(same, 1, 2, {}, costs(0));
  CHECK(study.chosen == 0);
  CHECK(study.options.size() == 3);  // never, every window, every second
  for (const ReplacementOption& o : study.options) {
    CHECK(o.moves == 0);
    CHECK(o.step_s == Approx(1));
  }
}

TEST_CASE("busy experts that change once: one move pays if it costs less than it saves") {
  // Windows of 100 steps: 0 and 1 busy in two, then 0 and 2 in six. Balanced is 5 of 10 tokens a rank; 0 and 2 on one
  // rank, where they may be while 0 and 1 are apart, are 8 of 10.
  LoadWindows drift = turns(8, 2, 100);
  for (std::size_t w = 2; w < 8; ++w) drift.loads[w] = drift.loads[2];
  const ReplacementStudy free = study_replacement(drift, 1, 2, {}, costs(0));
  const ReplacementOption& kept = free.options[0];
  const double bad = slots_load(drift.loads[2], fill_slots({drift.loads[0]}, 1, 2, {}), 1, 2);
  CHECK(kept.step_s == Approx((1 + 6 * bad) / 7));
  REQUIRE(bad == Approx(1.6));
  CHECK(free.chosen == 1);
  CHECK(free.options[1].moves == 1);
  CHECK(free.options[1].step_s == Approx((6 + bad) / 7));  // the window in which they change is placed as before
  CHECK(free.gain() == Approx(1 - free.options[1].step_s / kept.step_s));
  const double saved_s = 5 * 100 * (bad - 1);
  CHECK(study_replacement(drift, 1, 2, {}, costs(0.9 * saved_s)).chosen == 1);
  const ReplacementStudy dear = study_replacement(drift, 1, 2, {}, costs(1.1 * saved_s));
  CHECK(dear.chosen == 0);
  CHECK(dear.options[1].with_moves_s == Approx(dear.options[1].step_s + 1.1 * saved_s / 700));
  CHECK(dear.gain() == 0);
}

TEST_CASE("loads that turn every window are always placed too late") {
  const ReplacementStudy study = study_replacement(turns(9, 1, 100), 1, 2, {}, costs(1));
  CHECK(study.options[1].step_s > study.options[0].step_s);
  CHECK(study.options[1].moves == 7);  // at window 1 the first placement is the one planned on the window before
  CHECK(study.chosen != 1);
}

TEST_CASE("windows: histograms in the order of time, or a recording cut into steps") {
  const ModelSpec model = [] {
    ModelSpec m;
    m.layers = 2, m.d_model = 4, m.ffn = 2, m.experts = 2, m.top_k = 1;
    return m;
  }();
  const test::TempDirectory folder;
  {
    std::ofstream out(folder / "routing.csv");
    out << "step,microbatch,layer,rank,expert0,expert1\n";
    for (int step = 100; step < 150; ++step)
      for (int layer = 0; layer < 2; ++layer) out << step << ",0," << layer << ",0," << step - 99 << ",1\n";
    std::ofstream(folder / "h.csv") << "layer,expert,count\n0,0,3\n0,1,1\n";
  }
  const std::string recording = (folder / "routing.csv").string(), histogram = (folder / "h.csv").string();
  const LoadWindows tens = read_load_windows({recording}, 10, model);
  REQUIRE(tens.loads.size() == 5);
  CHECK(tens.steps == 10);
  CHECK(tens.loads[1].name == "steps 110 to 119");
  double sum = 0;  // of shares k / (k + 1), k = 11 to 20
  for (int k = 11; k <= 20; ++k) sum += k / (k + 1.0);
  CHECK(shares_of(tens.loads[1], 0)[0] == Approx(sum / 10));
  const LoadWindows ones = read_load_windows({recording}, 1, model);
  CHECK(ones.steps == 4);  // 50 windows are more than 16
  CHECK(ones.loads.size() == 12);
  CHECK(ones.loads[1].name == "steps 104 to 107");
  CHECK(shares_of(ones.loads[1], 0)[0] == Approx((5 / 6.0 + 6 / 7.0 + 7 / 8.0 + 8 / 9.0) / 4));
  {
    std::ofstream out(folder / "long.csv");  // every hundredth of 1.2 million steps, but for a gap
    out << "step,microbatch,layer,rank,expert0,expert1\n";
    for (int step = 0; step < 1'200'000; step += 100)
      if (step < 300'000 || step >= 450'000) out << step << ",0,0,0," << (step < 300'000 ? "3,1" : "1,3") << '\n';
  }
  const LoadWindows most = read_load_windows({(folder / "long.csv").string()}, 100, model);
  CHECK(most.steps == 102'400);  // 11,999 windows of 100 steps are 11 of these
  REQUIRE(most.loads.size() == 11);
  CHECK(shares_of(most.loads[0], 0)[0] == Approx(0.75));
  CHECK(shares_of(most.loads[3], 0)[0] == Approx(0.25));  // none was recorded: as the next that was
  CHECK(read_load_windows({histogram, histogram}, 500, model).steps == 500);
  CHECK_THROWS_WITH(read_load_windows({histogram}, 500, model), Catch::Contains("found one window"));
  CHECK_THROWS_WITH(read_load_windows({recording}, 26, model), Catch::Contains("found one window of 26 steps"));
  CHECK_THROWS_WITH(read_load_windows({recording}, 51, model), Catch::Contains("found no window of 51 steps"));
  ModelSpec dense = model;
  dense.experts = 0;
  CHECK_THROWS_WITH(read_load_windows({histogram, histogram}, 1, dense), Catch::Contains("which has none"));
}
