#include "reports/render/chrome_trace.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "reports/render/progress.hpp"
#include "tests/unit/report_fixture.hpp"

using namespace wt;
using nlohmann::json;

namespace {

json events(const std::vector<TraceGroup>& groups, const std::string& phase) {
  json out = json::array();
  const json trace = json::parse(chrome_trace(groups));
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == phase) out.push_back(event);
  return out;
}

}  // namespace

TEST_CASE("a trace keeps ids, lanes, times and waits") {
  const StepTimeline step = fixture::step(0, 1);
  const json bars = events({{"predicted", {step}}}, "X");
  REQUIRE(bars.size() == step.ops.size() + 1);
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    const json& bar = bars[i + 1];
    CHECK(bar["args"]["id"] == step.ops[i].id);
    CHECK(bar["cat"] == to_string(step.ops[i].lane));
    CHECK(bar["ts"].get<double>() + bar["dur"].get<double>() == Approx(step.ops[i].done_s * 1e6));
    CHECK(bar["args"]["waited_s"] == step.ops[i].waited_s);
    CHECK(bar["args"]["rows"] == step.ops[i].rows);
  }
}

TEST_CASE("bars of one lane do not overlap, and an op that queued starts when its lane was free") {
  const StepTimeline step = fixture::step(0, 1);
  const auto starts = op_starts(step);
  CHECK(starts[1] == step.ops[0].done_s);
  std::map<Lane, double> free_s;
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    CHECK(starts[i] >= free_s[step.ops[i].lane]);
    CHECK(starts[i] <= step.ops[i].done_s);
    free_s[step.ops[i].lane] = step.ops[i].done_s;
  }
}

TEST_CASE("predicted and measured ranks are processes of their own, side by side") {
  const json names =
      events({{"predicted", {fixture::step(0, 1), fixture::step(12, 1)}}, {"measured", {fixture::step(12, 1)}}}, "M");
  std::map<std::int64_t, std::string> processes;
  std::map<std::int64_t, int> order;
  for (const json& event : names) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["name"] == "process_sort_index") order[event["pid"]] = event["args"]["sort_index"];
  }
  CHECK(processes == std::map<std::int64_t, std::string>{
                         {0, "predicted rank 0"}, {12, "predicted rank 12"}, {112, "measured rank 12"}});
  CHECK(order[112] == order[12] + 1);
}

TEST_CASE("a step begins when the slowest rank has finished the one before") {
  StepTimeline fast = fixture::step(0, 1), slow = fixture::step(1, 2), next = fixture::step(0, 1);
  next.step = 4;
  const json bars = events({{"", {next, fast, slow}}}, "X");
  CHECK(bars[0]["name"] == "step 4");
  CHECK(bars[0]["ts"].get<double>() == Approx(slow.step_s * 1e6));
}

TEST_CASE("a trace of nothing, of an empty step and of an odd id is still a document") {
  CHECK(json::parse(chrome_trace({}))["traceEvents"].empty());
  CHECK(events({{"g", {StepTimeline{}}}}, "X").size() == 1);
  StepTimeline odd;
  odd.ops = {{.id = "a\"\\\n\xff", .issued_s = 2, .done_s = 1}};
  const json bars = events({{"g", {odd}}}, "X");
  CHECK(bars[1]["dur"] == 0);
}

TEST_CASE("the timeline chart has predicted above measured for each rank and lane") {
  const Chart chart = timeline_chart("t", {{"predicted", {fixture::step(0, 1)}}, {"measured", {fixture::step(0, 1)}}});
  REQUIRE(chart.labels.size() == 8);
  CHECK(chart.labels[0] == "rank 0 · computation · predicted");
  CHECK(chart.labels[1] == "rank 0 · computation · measured");
  CHECK(chart.series[0].spans.size() == fixture::step(0, 1).ops.size());
  CHECK(chart.series[1].spans[0].end == Approx(8.0));
  CHECK_THROWS_AS(timeline_chart("t", {{"g", {fixture::step(0, 1), fixture::step(0, 1)}}}), Error);
}

TEST_CASE("a progress line has a bar, the count and the time so far, and fits") {
  const std::string line = progress_line("simulate", 25, 100, 10, "4x8", 200);
  CHECK(line == "simulate [██████                  ] 25/100, 10.0 s, 4x8");
  CHECK(progress_line("simulate", 25, 100, 10, "", 12) == "simulate [██");
  CHECK(progress_line("search", 7, 0, 3, "a\nb", 79) == "search, 3.00 s, a b");
  CHECK_THAT(progress_line("x", 150, 100, 10, "", 79), Catch::Contains("] 150/100, 10.0 s"));
}

TEST_CASE("a log has a line of words, and no sooner than work takes two seconds") {
  CHECK(progress_words("bounding layouts", 25, 100, 10, "") == "bounding layouts, 25 of 100, 10.0 s");
  CHECK(progress_words("reading times", 0, 0, 3, "a\nb") == "reading times, 3.00 s, a b");
  const auto written = [](std::chrono::milliseconds quiet) {
    std::FILE* file = std::tmpfile();
    REQUIRE(file);
    {
      Progress progress("work", 2, file, quiet);
      progress.update(1);
      progress.update("more work", 3, 4);
    }
    std::rewind(file);
    std::string text(256, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
  };
  CHECK(written(std::chrono::hours(1)).empty());
  Progress silent("work");
  CHECK(silent.during([] { return 7; }) == 7);
  CHECK_THROWS_AS(silent.during([]() -> int { throw Error(Code::usage, "refused"); }), Error);
  const std::string text = written(std::chrono::milliseconds(0));
  CHECK(text.starts_with("work, 1 of 2, "));
  CHECK(text.ends_with("\n"));  // a line, not a bar that is drawn over
  CHECK(text.find('\r') == std::string::npos);
}
