#include "planner/cli/gate/gate_report.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using Catch::Matchers::Contains;
using nlohmann::json;
using Values = std::vector<double>;

namespace {

wt::Measurement measurement(const std::string& kernel, double factor, std::size_t n = 9) {
  wt::Measurement m;
  m.kernel = kernel;
  for (std::size_t i = 0; i < n; ++i) m.samples.push_back(factor * (1e-3 + 1e-7 * static_cast<double>(i)));
  m.evidence = {wt::Evidence::measured, "test"};
  return m;
}

// One benchmark of each verdict but incomparable.
wt::GateResult result(const wt::GateOptions& options = {}) {
  const wt::Profile base = {{{"device", "H100"}},
                            {measurement("gemm<a|b>&\"c\"", 1), measurement("copy", 1), measurement("gone", 1),
                             measurement("few", 1, 3), measurement("gain", 1.5)}};
  wt::Profile current = {{{"device", "H100"}},
                         {measurement("gemm<a|b>&\"c\"", 1.2), measurement("copy", 1), measurement("added", 1),
                          measurement("few", 1, 3), measurement("gain", 1)}};
  current.failures = {{"broken", "wrong <result>"}};
  return wt::compare(base, current, options);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

}  // namespace

TEST_CASE("the text opens with the sentence and lists findings worst first") {
  const std::string text = wt::gate_text(result());
  CHECK(text.find("1 regression in 4 benchmarks compared, 1 failed, 1 faster, 1 inconclusive, 1 new, 1 missing.\n") ==
        0);
  CHECK_THAT(text, Contains("1 ms") && Contains("1.2 ms") && Contains("+20.0 %"));
  CHECK(text.find("gemm") < text.find("broken"));
  CHECK(text.find("broken") < text.find("gone"));
  CHECK(text.find("gone") < text.find("few"));
  CHECK(text.find("copy") == std::string::npos);  // the same: counted, not listed
  CHECK_THAT(wt::gate_text(result(), true), Contains("copy") && Contains("added"));
}

TEST_CASE("the JSON carries every row, every number, and nulls where there is none") {
  const json document = wt::gate_json(result());
  CHECK(document["schema"] == "windtunnel.gate/1");
  CHECK(document["exit_status"] == 1);
  REQUIRE(document["rows"].size() == 7);
  const json& slower = document["rows"][0];
  CHECK(slower["verdict"] == "slower");
  CHECK(slower["ratio"].get<double>() == Approx(1.2));
  CHECK(slower["p"].get<double>() == Approx(2.0 / 48620));
  CHECK(document["rows"][1]["verdict"] == "failed");
  CHECK(document["rows"][1]["reason"] == "wrong <result>");
  CHECK(document["rows"][1]["p"].is_null());
  CHECK(document["rows"][2]["verdict"] == "missing");
  CHECK(document["counts"]["same"] == 1);
  CHECK(document["options"]["alpha"] == 0.01);
}

TEST_CASE("Markdown shows findings, folds the rest, and escapes names") {
  const std::string text = wt::gate_markdown(result());
  CHECK(text.find("### 1 regression") == 0);
  CHECK_THAT(text, Contains("gemm&lt;a\\|b&gt;"));
  CHECK(text.find("| slower |") < text.find("<details>"));
  CHECK(text.find("| faster |") < text.find("<details>"));
  CHECK(text.find("| inconclusive |") > text.find("<details>"));
  CHECK(count(text, "\n| ") == 7 + 2);  // every benchmark once, and two table heads
}

TEST_CASE("JUnit has one testcase a benchmark and counts that agree with its elements") {
  const std::string text = wt::gate_junit(result());
  CHECK_THAT(text, Contains("tests=\"7\" failures=\"2\" errors=\"1\" skipped=\"1\""));
  CHECK(count(text, "<testcase ") == 7);
  CHECK(count(text, "<failure ") == 2);
  CHECK(count(text, "<skipped ") == 1);
  CHECK_THAT(text, Contains("<error type=\"failed\"") && Contains("wrong &lt;result>"));
  CHECK_THAT(text, Contains("<failure type=\"regression\"") && Contains("<failure type=\"missing\""));
  CHECK_THAT(text, Contains("name=\"gemm&lt;a|b>&amp;&quot;c&quot;/forward\""));
}

TEST_CASE("JUnit: allowed losses and old failures are skipped, other machines are errors") {
  wt::GateOptions options;
  options.allow_missing = true;
  CHECK_THAT(wt::gate_junit(result(options)), Contains("failures=\"1\" errors=\"1\" skipped=\"2\""));
  const wt::GateResult other =
      wt::compare({{{"device", "H100"}}, {measurement("k", 1)}}, {{{"device", "H200"}}, {measurement("k", 1)}});
  CHECK_THAT(wt::gate_junit(other), Contains("errors=\"1\"") && Contains("<error type=\"incomparable\""));
  wt::Profile broken{{{"device", "H100"}}, {measurement("k", 1)}};
  broken.failures = {{"broken", "no memory"}};
  CHECK_THAT(wt::gate_junit(wt::compare(broken, broken)),
             Contains("errors=\"0\" skipped=\"1\"") && Contains("failed in the base, too: no memory"));
  CHECK_THAT(wt::gate_text(other), Contains("Not comparable: the fingerprints differ in device: 'H100' and 'H200'."));
}

TEST_CASE("every format tells the same exit status") {
  const wt::GateResult r = result();
  CHECK(wt::gate_json(r)["exit_status"] == r.exit_status());
  CHECK_THAT(wt::gate_junit(r), Contains(fmt::format("name=\"exit_status\" value=\"{}\"", r.exit_status())));
}

TEST_CASE("the comment holds findings alone, regressions first, and what measures them again") {
  wt::GateResult r = result();
  r.command = "windtunnel gate run --base abc";
  const std::string text = wt::gate_comment(r);
  CHECK_THAT(text, Contains("+20.0 %") && Contains("windtunnel gate run --base abc") && Contains("missing"));
  CHECK(text.find("gemm") < text.find("gain"));
  CHECK(text.find("copy") == std::string::npos);
  CHECK(text.find("few") == std::string::npos);
  CHECK(count(text, "\n| ") == 5);  // the head, slower, failed, missing, faster
}

TEST_CASE("the comment is empty without a finding, and never longer than a forge takes") {
  wt::Profile same = {{{"device", "H100"}}, {measurement("copy", 1)}};
  CHECK(wt::gate_comment(wt::compare(same, same)).empty());
  wt::Profile base = same, current = same;
  for (int i = 0; i < 500; ++i) base.measurements.push_back(measurement(fmt::format("gone{}", i), 1));
  const std::string text = wt::gate_comment(wt::compare(base, current));
  CHECK_THAT(text, Contains("and 400 more"));
  CHECK(text.size() < 65536);
  wt::GateOptions allowed;
  allowed.allow_missing = true;
  CHECK(wt::gate_comment(wt::compare(base, current, allowed)).empty());
}

TEST_CASE("the selftest report prints both figures") {
  wt::RecordedRuns runs{
      "test", {"a", "b", "c", "d", "e", "f", "g", "h"}, {"k"}, {{8e-3, 8e-3, 8e-3, 8e-3, 8e-3, 8e-3, 8e-3, 8e-3}}};
  wt::SelftestOptions options;
  options.samples = 4;
  options.trials = 3;
  const wt::SelftestResult r = wt::selftest(runs, options);
  CHECK_THAT(wt::selftest_text(r), Contains("False alarms") && Contains("Recall") && Contains("10 %"));
  // None of three, and one window of eight runs: 1 - 0.05^(1/3), and no more than "under 95 %".
  CHECK_THAT(wt::selftest_text(r), Contains("under 63.2 % (0 of 3)") && Contains("under 95.0 % (0 of 1)") &&
                                       !Contains(" 0.0 % (0 of") && Contains("chosen on this recording"));
  CHECK(wt::selftest_json(r)["interleaved"]["slower"] == 0);
  CHECK(wt::selftest_json(r)["interleaved"]["failed_runs_bound"].get<double>() == Approx(1 - std::cbrt(0.05)));
  CHECK(wt::selftest_json(r)["recall"].size() == 3);
}
