#include "bench/gate/history_alerts.hpp"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <random>

#include "planner/cli/gate/history_report.hpp"
#include "reports/render/render.hpp"
#include "tests/fixtures/temp_directory.hpp"

using Catch::Matchers::Contains;
using wt::ShiftState;

namespace {

/// A history of one benchmark that grows run by run, and what it said: as `gate record` does it, without files.
struct Told {
  wt::History history;
  std::vector<std::string> said = {};  ///< "raised 30", "withdrawn 30": the run that the alert is about
  std::mt19937_64 random{3};

  explicit Told(bool smaller_is_better = true) {
    history.series.push_back({"gemm", "s", smaller_is_better, "machine-1", {}, {}});
  }

  void run(double level) {
    auto& points = history.series[0].points;
    const std::size_t n = points.size();
    const double noise = 0.004 * (2 * (static_cast<double>(random() >> 11) * 0x1p-53) - 1);
    points.push_back({fmt::format("run{}", n), fmt::format("{:07x}", 0xabc0000 + n), fmt::format("2026-{:04}", n), "",
                      "", level * (1 + noise)});
    history.runs = n + 1;
    tell();
  }
  void runs(std::size_t count, double level) {
    for (std::size_t i = 0; i < count; ++i) run(level);
  }
  void tell() {
    for (const wt::AlertRecord& each : wt::judge_history(history).new_alerts) {
      said.push_back((each.withdrawn ? "withdrawn " : "raised ") + each.run.substr(3));
      history.alerts.push_back(each);
    }
  }
  std::vector<wt::SeriesShift> shifts() const { return wt::judge_history(history).series[0].shifts; }
};

using Said = std::vector<std::string>;

}  // namespace

TEST_CASE("an alert is raised once, when its level has lasted, and stays known") {
  Told told;
  told.runs(30, 1e-3);
  told.runs(3, 1.05e-3);
  CHECK(told.said.empty());
  told.run(1.05e-3);
  CHECK(told.said == Said{"raised 30"});
  told.runs(60, 1.05e-3);
  CHECK(told.said == Said{"raised 30"});
  REQUIRE(told.shifts().size() == 1);
  CHECK(told.shifts()[0].state == ShiftState::known);
  CHECK(told.shifts()[0].worse);
  CHECK(told.shifts()[0].before == "abc001d");
  CHECK(told.shifts()[0].commit == "abc001e");
}

TEST_CASE("an alert that does not persist is withdrawn, and its way back is no alert") {
  Told told;
  told.runs(30, 1e-3);
  told.runs(4, 1.10e-3);
  CHECK(told.said == Said{"raised 30"});
  told.runs(30, 1e-3);
  CHECK(told.said == Said{"raised 30", "withdrawn 30"});
  CHECK(told.shifts().empty());
  CHECK_FALSE(told.history.alerts.back().reason.empty());
}

TEST_CASE("an alert is not withdrawn before six values tell") {
  Told told;
  told.runs(30, 1e-3);
  told.history.alerts.push_back({false, "machine-1", "gemm", "run27", "abc001a", "abc001b", 1.05, "", "run29", "2026"});
  told.runs(2, 1e-3);
  CHECK(told.said.empty());
  told.run(1e-3);
  CHECK(told.said == Said{"withdrawn 27"});
}

TEST_CASE("two changes give two alerts, a fix among them") {
  Told told;
  told.runs(30, 1e-3);
  told.runs(20, 1.08e-3);
  told.runs(20, 1e-3);
  CHECK(told.said == Said{"raised 30", "raised 50"});
  CHECK(told.shifts()[0].worse);
  CHECK_FALSE(told.shifts()[1].worse);
}

TEST_CASE("two changes four runs apart are two alerts, each raised once") {
  Told told;
  told.runs(8, 1.0e-3);
  told.runs(4, 1.1e-3);
  told.runs(20, 1.2e-3);
  CHECK(told.said == Said{"raised 8", "raised 12"});
  REQUIRE(told.shifts().size() == 2);
  CHECK(told.shifts()[0].state == ShiftState::known);
  CHECK(told.shifts()[1].state == ShiftState::known);
}

TEST_CASE("only a change for the worse is a regression, in the direction of the benchmark") {
  for (bool smaller_is_better : {true, false}) {
    Told told(smaller_is_better);
    told.runs(30, 100);
    told.history.alerts.clear();
    for (int i = 0; i < 8; ++i) told.history.series[0].points.push_back(told.history.series[0].points.back());
    auto& points = told.history.series[0].points;
    for (std::size_t i = 30; i < points.size(); ++i) {
      points[i].run = fmt::format("run{}", i);
      points[i].median = 110 + 0.1 * static_cast<double>(i % 3);
    }
    const wt::HistoryJudgement judgement = wt::judge_history(told.history);
    REQUIRE(judgement.new_alerts.size() == 1);
    CHECK(judgement.has_regression() == smaller_is_better);
  }
}

TEST_CASE("an accepted change raises nothing, and keeps its reason; another one does") {
  Told told;
  told.history.accepted.push_back({"abc001e", "", "checks every index", "2026"});
  told.runs(30, 1e-3);
  told.runs(40, 1.05e-3);
  CHECK(told.said.empty());
  CHECK(told.shifts()[0].state == ShiftState::accepted);
  CHECK(told.shifts()[0].reason == "checks every index");
  told.runs(10, 1.20e-3);
  CHECK(told.said == Said{"raised 70"});

  Told other;
  other.history.accepted.push_back({"abc001e", "copy", "of another benchmark", "2026"});
  other.runs(30, 1e-3);
  other.runs(10, 1.05e-3);
  CHECK(other.said == Said{"raised 30"});
}

TEST_CASE("a wanted change does not excuse another one beside it") {
  for (const auto& [commit, raised] : {std::pair{"abc0008", "raised 12"}, std::pair{"abc000c", "raised 8"}}) {
    Told told;
    told.history.accepted.push_back({commit, "gemm", "checks every index", "2026"});
    told.runs(8, 1.0e-3);
    told.runs(4, 1.1e-3);
    told.runs(20, 1.2e-3);
    INFO(commit);
    REQUIRE(told.shifts().size() == 2);
    CHECK((told.shifts()[0].state == ShiftState::accepted) == (told.said.back() == "raised 12"));
    CHECK(told.said.back() == raised);
  }
}

TEST_CASE("alerts of two hosts about one change are one") {
  Told told;
  told.runs(30, 1e-3);
  told.runs(10, 1.05e-3);
  wt::AlertRecord theirs = told.history.alerts.at(0);
  theirs.run = "run32";  // found two runs later, with the runs that they had
  told.history.alerts.push_back(theirs);
  told.runs(30, 1.05e-3);
  CHECK(told.said == Said{"raised 30"});
}

TEST_CASE("records of alerts and acceptances come back from a folder") {
  const wt::test::TempDirectory folder;
  std::filesystem::create_directories(folder / "runs");
  const wt::AlertRecord raised{false, "machine-1", "gemm", "run30", "abc001d", "abc001e", 1.05, "", "run33", "2026-02"};
  wt::AlertRecord withdrawn = raised;
  withdrawn.withdrawn = true;
  withdrawn.reason = "went back";
  withdrawn.date = "2026-03";
  wt::record_alerts({withdrawn}, folder.path());
  wt::record_alerts({raised}, folder.path());
  wt::record_alerts({raised}, folder.path());
  wt::record_alerts({}, folder.path());
  wt::record_acceptance({"abc001e", "gemm", "wanted", "2026-04"}, folder.path());
  const wt::History history = wt::read_history(folder.path());
  REQUIRE(history.alerts.size() == 2);
  CHECK_FALSE(history.alerts[0].withdrawn);
  CHECK(history.alerts[0].ratio == 1.05);
  CHECK(history.alerts[1].reason == "went back");
  REQUIRE(history.accepted.size() == 1);
  CHECK(history.accepted[0].reason == "wanted");
}

TEST_CASE("the report has each change with its commits, and a chart with its mark") {
  Told told;
  told.runs(30, 1e-3);
  told.runs(10, 1.05e-3);
  const wt::HistoryJudgement judgement = wt::judge_history(told.history);
  const wt::Report report = wt::history_report(told.history, judgement);
  CHECK_NOTHROW(wt::check(report));
  CHECK_THAT(wt::markdown_report(report), Contains("abc001d..abc001e") && Contains("gemm"));
  const auto& chart = std::get<wt::Chart>(report.sections.back().items.at(0));
  REQUIRE(chart.marks.size() == 1);
  CHECK(chart.marks[0].x == 31);
  CHECK(chart.labels[30] == "abc001e");
  CHECK(chart.label_axis == "commit");
  CHECK(chart.unit == "ms");
  CHECK(chart.series.size() == 2);
  CHECK(report.payload["series"][0]["points"].size() == 40);
  CHECK(report.payload["series"][0]["shifts"][0]["state"] == "known");
  CHECK(wt::new_alerts_text(judgement) == "Nothing new.\n");
}

TEST_CASE("a change between two runs of one commit is not laid to commits") {
  Told told;
  told.runs(30, 1e-3);
  told.runs(10, 1.05e-3);
  told.history.series[0].points[30].commit = told.history.series[0].points[29].commit;
  const wt::Report report = wt::history_report(told.history, wt::judge_history(told.history));
  CHECK_THAT(wt::markdown_report(report), Contains("none: abc001d before and after"));
}
