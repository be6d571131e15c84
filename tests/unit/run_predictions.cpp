// Predictions of runs do not know what they predict: neither through their group under another name, nor through a
// stack.
#include <catch2/catch.hpp>

#include "sim/validate/judge_runs.hpp"
#include "tests/fixtures/published_reference.hpp"

using namespace wt;

namespace {

/// A sixth of the training runs, so that fits are quick.
const std::vector<RunRow>& published_runs() {
  static const std::vector<RunRow> some = [] {
    std::vector<RunRow> runs;
    for (std::size_t i = 0; i < 600; i += 6) runs.push_back(test::published().tables().runs[i]);
    return runs;
  }();
  return some;
}

std::vector<RunRow> of_source(const std::string& source) {
  std::vector<RunRow> out;
  for (const RunRow& row : published_runs())
    if (row.source == source && row.unusable.empty()) out.push_back(row);
  return out;
}

std::vector<Judged> judged(const std::vector<RunRow>& rows, const std::vector<RunRow>& published = published_runs()) {
  return judge_runs(rows, PublishedTimes(test::published(), published));
}

void check_same(const std::vector<Judged>& a, const std::vector<Judged>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    REQUIRE(a[i].forecast.value);
    REQUIRE(b[i].forecast.value);
    CHECK(*b[i].forecast.value == Approx(*a[i].forecast.value).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("what a source measured has no part in its predictions") {
  const std::vector<RunRow> rows = of_source("internevo");
  REQUIRE(rows.size() >= 3);
  const auto before = judged(rows);
  std::vector<RunRow> slower = rows, changed = published_runs();
  for (std::vector<RunRow>* set : {&slower, &changed})
    for (RunRow& row : *set)
      if (row.source == "internevo") row.step_s *= 2;
  check_same(before, judged(slower, changed), 0.005);
}

TEST_CASE("nor have the same measurements under the name of another source, model or framework") {
  const std::vector<RunRow> rows = of_source("internevo");
  const auto before = judged(rows);
  std::vector<RunRow> renamed = rows;
  for (RunRow& row : renamed)
    row.source = row.origin = "elsewhere", row.group = "elsewhere | 7B", row.framework = "Homegrown";
  const auto after = judged(renamed);
  check_same(before, after, 0.005);
}

TEST_CASE("a GPU, a precision and a layout that nothing is known of are reasons, not predictions") {
  const RunRow row = of_source("internevo").front();
  const auto reason = [&](const RunRow& r) {
    const auto rows = judged({r});
    CHECK_FALSE(rows[0].forecast.value);
    return rows[0].forecast.reason;
  };
  RunRow other = row;
  other.gpu = "MI250X";
  CHECK(reason(other) == "no data sheet of 'MI250X'");
  for (const char* format : {"fp8", "fp8_blockwise", "mxfp8", "nvfp4"}) {  // A100 has no such rates
    other = row, other.precision = precision_recipe(std::string("amp_") + format, "test");
    CHECK(reason(other) == std::string("no ") + format + " products on A100-80G-SXM");
  }
  other = row, other.ep = 3;
  CHECK(reason(other).find("experts over 3 ranks") != std::string::npos);
  other = row, other.step_s = 0;
  CHECK(reason(other) == "no step time measured");
}

TEST_CASE("a GPU that nobody measured is predicted by its data sheet, in a wide interval") {
  std::vector<RunRow> rows = of_source("internevo");
  const auto before = judged(rows);
  for (RunRow& row : rows)
    row.gpu = "L40S", row.source = row.origin = "elsewhere", row.group = "elsewhere | 7B", row.step_s *= 2;
  const auto after = judged(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(after[i].forecast.value);
    CHECK(*after[i].forecast.value != *before[i].forecast.value);
    CHECK(after[i].forecast.high > 1.1 * after[i].forecast.low);
    CHECK(after[i].forecast.evidence == only(Evidence::derived));
  }
}
