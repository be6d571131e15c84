// The report of a run from its folder: what was lost and done again, where the time went, and charts that hide nothing.
#include "trainer/run_folder/run_history.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "planner/cli/report/run_report.hpp"
#include "planner/cli/report/run_thinned.hpp"
#include "reports/render/render.hpp"
#include "reports/render/text_report.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
using nlohmann::json;

namespace {

/// A step of one second that ended then.
std::string line(std::int64_t step, double unix_s, double loss) {
  return json{{"step", step},       {"unix_s", unix_s}, {"step_s", 1.0},        {"loss", loss},
              {"tokens_per_s", 64}, {"mfu", 0.4},       {"samples", {1, 2, 3}}, {"mtp_losses", {1.0}}}
             .dump() +
         "\n";
}

std::string start(double connected, double loaded, std::int64_t after) {
  json out{{"generation", 0}, {"connected_unix_s", connected}, {"loaded_unix_s", loaded}, {"resumed_after", after}};
  if (after > 0) out["level"] = "storage";
  return out.dump() + "\n";
}

/// Steps 1 to 5; again from 4 to 8; again from 7 to 10. Each start went back two steps.
void write_run(const TempDirectory& folder) {
  std::string metrics, lost;
  for (int step = 1; step <= 3; ++step) metrics += line(step, 101 + step, 10 - step);
  for (int step = 4; step <= 6; ++step) metrics += line(step, 119 + step, 10 - step);
  for (int step = 7; step <= 10; ++step) metrics += line(step, 135 + step, 10 - step);
  for (int step = 4; step <= 5; ++step) lost += line(step, 101 + step, 50);
  for (int step = 7; step <= 8; ++step) lost += line(step, 119 + step, 50);
  write_bytes(folder / "metrics.jsonl", metrics);
  write_bytes(folder / "replayed.jsonl", lost);
  write_bytes(folder / "generations.jsonl", start(100, 101, 0) + start(120, 122, 3) + start(140, 141, 6));
  write_bytes(folder / "checkpoints.jsonl", R"({"step":3,"blocking_s":0.25,"total_s":2,"bytes":1000})"
                                            "\n"
                                            R"({"step":6,"blocking_s":0.5,"total_s":3,"bytes":1000})"
                                            "\n");
  write_bytes(folder / "agent.json", json{{"wall_s", 45},
                                          {"excluded", json::array()},
                                          {"restarts",
                                           {{{"generation", 1},
                                             {"rank", 2},
                                             {"ranks", {2}},
                                             {"cause", "signal 9 (Killed)"},
                                             {"message", ""},
                                             {"policy", "restart"},
                                             {"detected_unix_s", 128},
                                             {"detected_s", 28},
                                             {"stopped_s", 29},
                                             {"nodes", json::array()}}}}}
                                         .dump());
}

std::string refused(const std::string& metrics) {
  const TempDirectory folder;
  write_bytes(folder / "metrics.jsonl", metrics);
  return usage_error([&] { read_run_history(folder.path()); });
}

std::vector<StepLine> numbered_steps(std::int64_t n) {
  std::vector<StepLine> out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    StepLine& step = out[static_cast<std::size_t>(i)];
    step.step = i + 1, step.unix_s = static_cast<double>(i + 1), step.step_s = 1,
    step.loss = static_cast<double>(i % 7);
  }
  return out;
}

const Chart& chart_of(const Report& report, const std::string& title) {
  for (const Section& section : report.sections)
    for (const Item& item : section.items)
      if (const Chart* chart = std::get_if<Chart>(&item); chart != nullptr && chart->title == title) return *chart;
  FAIL("no chart " + title);
  throw 0;
}

}  // namespace

TEST_CASE("a run's folder tells what each start lost, and why") {
  const TempDirectory folder;
  write_run(folder);
  const RunHistory run = read_run_history(folder.path());
  REQUIRE(run.steps.size() == 10);
  CHECK(run.steps[3].loss == 6);
  CHECK(run.steps[3].mfu == 0.4);
  CHECK(std::isnan(run.steps[3].exposed_s));
  CHECK(run.lost.size() == 4);
  REQUIRE(run.starts.size() == 3);
  CHECK(run.starts[1].reached == 5);
  CHECK(run.starts[1].lost == 2);
  CHECK(run.starts[1].away_s == 16);  // step 5 ended at 106, step 4 began again at 122
  CHECK_FALSE(run.starts[1].agent);   // before this launch of the agent
  CHECK(run.starts[2].reached == 8);
  CHECK(run.starts[2].lost == 2);
  CHECK(run.starts[2].away_s == 14);
  REQUIRE(run.starts[2].agent);
  CHECK(run.starts[2].agent->cause == "signal 9 (Killed)");
  CHECK(run.saves.size() == 2);
  CHECK_FALSE(run.ended);
}

TEST_CASE("the parts of the wall time add up") {
  const TempDirectory folder;
  write_run(folder);
  const RunTimes t = run_times(read_run_history(folder.path()));
  CHECK(t.wall_s == 45);
  CHECK(t.counted_s == 10);
  CHECK(t.lost_s == 4);
  CHECK(t.away_s == 30);
  CHECK(t.saving_s == 0.75);
  CHECK(t.rest_s() == 0.25);
  CHECK(t.goodput() == 10.0 / 45);
}

TEST_CASE("metrics alone are a run, too; a half-written line is left out") {
  const TempDirectory folder;
  write_bytes(folder / "metrics.jsonl", line(1, 101, 2) + line(2, 102, 1) + R"({"step":3,"uni)");
  const RunHistory run = read_run_history(folder.path());
  CHECK(run.steps.size() == 2);
  CHECK(run_times(run).wall_s == 2);
  const std::string text = text_report(run_report(run));
  CHECK_THAT(text, Contains("Step 2: loss 1.0000, 64 tokens/s, MFU 40.0 %") && Contains("No checkpoint was saved"));
}

TEST_CASE("a line that was torn ends no report, wherever it is, and is told of") {
  const TempDirectory folder;
  write_run(folder);
  const std::string evaluation = R"({"step":3,"label":"eval","loss":2.5})";
  write_bytes(folder / "evaluations.jsonl", evaluation + "\n" + evaluation.substr(0, 20));
  write_bytes(folder / "replayed.jsonl", read_bytes(folder / "replayed.jsonl") + "{\"step\":9,\"uni");
  // Killed while it wrote the third line; the next start writes on behind it.
  write_bytes(folder / "generations.jsonl",
              start(100, 101, 0) + start(120, 122, 3) + "{\"connected_unix_s\":13" + start(140, 141, 6) + "{\"conn\n");
  const RunHistory run = read_run_history(folder.path());
  CHECK(run.starts.size() == 3);
  CHECK(run.starts[2].lost == 2);
  CHECK(run.lost.size() == 4);
  REQUIRE(run.evaluations.size() == 1);
  CHECK(run.torn == std::vector<std::string>{"replayed.jsonl:5", "generations.jsonl:3", "generations.jsonl:4",
                                             "evaluations.jsonl:2"});
  CHECK_THAT(text_report(run_report(run)), Contains("half written: replayed.jsonl:5, generations.jsonl:3"));
  // Whole lines are still read strictly.
  write_bytes(folder / "evaluations.jsonl", "{\"step\":3}\n");
  CHECK_THAT(usage_error([&] { read_run_history(folder.path()); }), Contains("evaluations.jsonl:1"));
}

TEST_CASE("behind a torn line a whole one is read, whatever objects are in it") {
  const TempDirectory folder;
  write_run(folder);
  json third = json::parse(start(140, 141, 6));
  third["phases_s"] = {{"connect", {{"store", 1}}}, {"load", {{"shards", 2}}}};
  write_bytes(folder / "generations.jsonl", start(100, 101, 0) + start(120, 122, 3) +
                                                R"({"connected_unix_s":13,"phases_s":{"load":)" + third.dump() + "\n");
  const RunHistory run = read_run_history(folder.path());
  REQUIRE(run.starts.size() == 3);
  CHECK(run.starts[2].resumed_after == 6);
  CHECK(run.starts[2].level == "storage");
  CHECK(run.torn == std::vector<std::string>{"generations.jsonl:3"});
}

TEST_CASE("a torn line of very many objects is passed over without a look at each") {
  const TempDirectory folder;
  write_run(folder);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  write_bytes(folder / "generations.jsonl", start(100, 101, 0) + deep + "\n" + start(120, 122, 3));
  const RunHistory run = read_run_history(folder.path());
  CHECK(run.starts.size() == 2);
  CHECK(run.torn == std::vector<std::string>{"generations.jsonl:2"});
}

TEST_CASE("a folder that holds no run, and lines that are none, are refused by name") {
  const TempDirectory folder;
  CHECK_THAT(usage_error([&] { read_run_history(folder.path()); }),
             Contains("metrics.jsonl") && Contains("windtunnel train -o"));
  CHECK_THAT(refused("hello\n"), Contains("metrics.jsonl:1"));
  CHECK_THAT(refused(line(1, 101, 1) + "[]\n"), Contains("metrics.jsonl:2"));
  CHECK_THAT(refused("{\"step\":1,\"unix_s\":1}\n"), Contains("metrics.jsonl:1") && Contains("step_s"));
  CHECK_THAT(refused("{\"step\":1,\"unix_s\":1,\"step_s\":0}\n"), Contains("above 0"));
  CHECK_THAT(refused("{\"step\":1,\"unix_s\":1,\"step_s\":1,\"loss\":\"x\"}\n"), Contains("/loss"));
  CHECK_THAT(refused(line(2, 101, 1) + line(2, 102, 1)), Contains("found step 2 behind step 2"));
}

TEST_CASE("the page shows steps as done last, those that were lost as points, and the resumes") {
  const TempDirectory folder;
  write_run(folder);
  const Report report = run_report(read_run_history(folder.path()));
  const Chart& loss = chart_of(report, "Loss");
  REQUIRE(loss.series.size() == 2);
  CHECK(loss.series[0].values == std::vector<double>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  CHECK(loss.series[1].points);
  CHECK(std::isnan(loss.series[1].values[2]));
  CHECK(loss.series[1].values[3] == 50);
  REQUIRE(loss.marks.size() == 2);
  CHECK(loss.marks[0].x == 3);
  CHECK(loss.marks[1].label == "resumed after step 6 from storage");
  CHECK(chart_of(report, "Model FLOPs utilisation").series[0].values[0] == 40);
  CHECK_THAT(report.answer_range, Contains("goodput 22.2 %, 2 restarts, 4 steps lost"));
  const std::string text = text_report(report), markdown = markdown_report(report);
  for (const std::string& form : {text, markdown}) CHECK_THAT(form, Contains("signal 9 (Killed)"));
  CHECK_THAT(text, Contains("resumed: at 3, 6"));
  const json document = report_json(report);
  CHECK(document.at("payload").at("lost_steps") == 4);
  CHECK(report_json(report_from_json(document, "again")) == document);
  CHECK_THAT(html_report(report), Contains("done again"));
}

TEST_CASE("evaluations are a chart of their own, a line a set") {
  const TempDirectory folder;
  write_run(folder);
  write_bytes(folder / "evaluations.jsonl",
              "{\"step\":0,\"label\":\"a\",\"loss\":3}\n{\"step\":5,\"label\":\"a\",\"loss\":2}\n"
              "{\"step\":5,\"label\":\"b\",\"loss\":null}\n");
  const Chart chart = chart_of(run_report(read_run_history(folder.path())), "Evaluation");
  CHECK(chart.x == std::vector<double>{0, 5});
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[0].values == std::vector<double>{3, 2});
  CHECK(std::isnan(chart.series[1].values[1]));
}

TEST_CASE("a run that ended without numbers says so first") {
  const TempDirectory folder;
  write_run(folder);
  write_bytes(folder / "diverged.json", R"({"step":11,"times":2,"unix_s":150})");
  const Report report = run_report(read_run_history(folder.path()));
  CHECK(report.status == Status::bad);
  CHECK_THAT(report.answer, Contains("ended at step 11, whose gradients are no numbers"));
}

TEST_CASE("a long run is thinned to points that hide no step") {
  auto steps = numbered_steps(100'000);
  steps[54'321].loss = 1000, steps[76'543].loss = -5;
  const ThinnedSteps points(1, 100'000, 600);
  CHECK(points.x().size() <= 600);
  CHECK(points.x().back() == 100'000);
  const auto band = points.band(steps, [](const StepLine& s) { return s.loss; });
  CHECK(*std::max_element(band.high.begin(), band.high.end()) == 1000);
  CHECK(*std::min_element(band.low.begin(), band.low.end()) == -5);
  CHECK(*std::max_element(band.median.begin(), band.median.end()) <= 6);
  for (std::size_t i = 0; i < band.median.size(); ++i) {
    CHECK(band.low[i] <= band.median[i]);
    CHECK(band.median[i] <= band.high[i]);
  }
  RunHistory run;
  run.steps = steps;
  const Report report = run_report(run);
  CHECK_THAT(chart_of(report, "Loss").note, Contains("median of 167 steps"));
  CHECK_THAT(text_report(report), Contains("24 of 599 points; the JSON has all"));
}

TEST_CASE("a short run keeps every step") {
  const ThinnedSteps points(5, 8, 600);
  CHECK(points.x() == std::vector<double>{5, 6, 7, 8});
  const auto nothing = points.band({}, [](const StepLine& s) { return s.loss; });
  CHECK(nothing.empty);
}

TEST_CASE("each step is in one point, however many there are") {
  for (const std::int64_t n : {1, 2, 599, 600, 601, 1199, 1200, 1201}) {
    const ThinnedSteps points(1, n, 600);
    CHECK(static_cast<std::int64_t>(points.x().size()) <= 600);
    const auto band = points.band(numbered_steps(n), [](const StepLine&) { return 1.0; });
    CHECK(std::accumulate(band.median.begin(), band.median.end(), 0.0) == static_cast<double>(points.x().size()));
    CHECK(points.x().back() == static_cast<double>(n));
  }
}
