// What the simulator costs, in docs/simulator.md and docs/accuracy.md, beside the recorded passes of bench_simulator.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/measurements/csv.hpp"
#include "tests/fixtures/page_tables.hpp"

using namespace wt::test;

namespace {

/// A case of the benchmark over all passes.
struct Passes {
  std::vector<double> cpu_s, resident_MB;
  double layouts = 0;

  /// The smallest and the largest figure, as the page writes them: three digits.
  Figures range(const std::function<double(double)>& figure) const {
    std::vector<double> out;
    for (const double seconds :
         {*std::min_element(cpu_s.begin(), cpu_s.end()), *std::max_element(cpu_s.begin(), cpu_s.end())})
      out.push_back(figure(seconds));
    return {significant(std::min(out[0], out[1]), 3), significant(std::max(out[0], out[1]), 3)};
  }
  Figures seconds() const {
    return range([](double s) { return s; });
  }
  Figures milliseconds() const {
    return range([](double s) { return 1e3 * s; });
  }
  Figures layouts_per_s() const {
    REQUIRE(layouts > 0);
    return range([this](double s) { return layouts / s; });
  }
  Figures memory() const {  // one figure where all passes have the same
    const auto [low, high] = std::minmax_element(resident_MB.begin(), resident_MB.end());
    REQUIRE(low != resident_MB.end());
    return *low == *high ? Figures{count(*low)} : Figures{count(*low), count(*high)};
  }
};

struct Recording {
  std::map<std::string, Passes> cases;
  std::string day;

  const Passes& of(const std::string& name) const {
    INFO(name);
    REQUIRE(cases.count(name) == 1);
    return cases.at(name);
  }
};

const Recording& recording() {
  static const Recording all = [] {
    Recording out;
    const auto table = wt::read_csv("planner/benchmarks/passes.csv", {"day", "case", "cpu_s", "layouts", "resident_MB"},
                                    wt::OtherColumns::ignored);
    for (const wt::CsvRow& row : table.rows) {
      Passes& passes = out.cases[row.cells[1]];
      passes.cpu_s.push_back(std::stod(row.cells[2]));
      if (!row.cells[3].empty()) passes.layouts = std::stod(row.cells[3]);
      if (!row.cells[4].empty()) passes.resident_MB.push_back(std::stod(row.cells[4]));
      CHECK((out.day.empty() || out.day == row.cells[0]));
      out.day = row.cells[0];
    }
    for (const auto& [name, passes] : out.cases) CHECK(passes.cpu_s.size() == 3);
    return out;
  }();
  return all;
}

const std::string kFolded = "step_by_gpus/gpus:3072", kLarge = "step_by_gpus/gpus:16384",
                  kUnfolded = "step_unfolded/gpus:3072";
const Figures kHalf = {count(0.5)};  // seconds

}  // namespace

TEST_CASE("docs/simulator.md: what the simulator costs, as it was recorded") {
  const auto runs = [](const std::string& name) { return recording().of(name).milliseconds() + kHalf; };
  const auto rate = [](const std::string& name) { return recording().of(name).layouts_per_s(); };
  const auto memory = [](const std::string& name) { return recording().of(name).memory(); };
  check_table("docs/simulator.md", "| what | figure | aim |",
              {{"one DBRX step, one microbatch, 3,072 GPUs, twins simulated once",
                recording().of(kFolded).milliseconds() + memory(kFolded) + Figures{count(0.3), count(300)}},
               {"the same, 16,384 GPUs",
                recording().of(kLarge).milliseconds() + memory(kLarge) + Figures{count(2), count(300)}},
               {"the same, every one of 3,072 GPUs simulated",
                recording().of(kUnfolded).seconds() + memory(kUnfolded) + Figures{count(3)}},
               {"bound 0, program just built", rate("bound0_just_built") + Figures{count(100000)}},
               {"bound 0, program built long ago", rate("bound0_of_space")},
               {"bound 1, program built long ago", rate("bound1_of_space") + Figures{count(1000)}},
               {"bound 0, with building the program and finding the busiest rank", rate("bound_with_program/bound:0")},
               {"bound 1, with the same", rate("bound_with_program/bound:1")},
               {"1,000 runs of 90 days, 556 failures each", runs("thousand_runs")},
               {"the same with local saves every 5 steps", runs("thousand_runs_with/local_saves")},
               {"the same with verified saves", runs("thousand_runs_with/silent_errors")},
               {"the same with 16 replicas that may be lost", runs("thousand_runs_with/replica_loss")}},
              1, 3);
  CHECK_THAT(paragraph("docs/simulator.md", "The figures are CPU time, of the fastest"),
             Catch::Contains("of " + recording().day));
}

TEST_CASE("docs/accuracy.md: speed of the simulator, as it was recorded") {
  const auto step = [](const std::string& name, double aim) {
    return recording().of(name).seconds() + recording().of(name).memory() + Figures{count(aim)};
  };
  const auto rate = [](const std::string& name) { return recording().of(name).layouts_per_s(); };
  check_table(
      "docs/accuracy.md", "| what | figure | aim |",
      {{"one step of DBRX on 3,072 GPUs, folded", step(kFolded, 0.3)},
       {"one step of DBRX on 16,384 GPUs, folded", step(kLarge, 2)},
       {"one step of DBRX on 3,072 GPUs, unfolded", step(kUnfolded, 3)},
       {"bound 0 of layouts just built, as the search asks for it", rate("bound0_just_built") + Figures{count(100000)}},
       {"bound 0 of a layout built long ago", rate("bound0_of_space")},
       {"bound 1 of layouts", rate("bound1_of_space") + Figures{count(1000)}},
       {"1,000 runs of 90 days with failures", recording().of("thousand_runs").seconds() + kHalf}},
      1, 3);
  CHECK_THAT(paragraph("docs/accuracy.md", "[`build/bin/bench_simulator`](simulator.md)"),
             Catch::Contains("on " + recording().day));
}
