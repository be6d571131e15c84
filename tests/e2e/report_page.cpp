// The page in a real browser: every chart of every kind, and of odd data, is drawn without an
// error.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "reports/render/render.hpp"
#include "tests/fixtures/has_program.hpp"
#include "tests/unit/report_fixture.hpp"

using namespace wt;
using wt::test::has_program;
namespace fs = std::filesystem;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Counts what is cut off: tables wider than their box, and 1 where the page itself is wider than its window.
const std::string kCutOff =
    "<script>document.documentElement.dataset.cut = [...document.querySelectorAll('table')].filter(table => "
    "table.scrollWidth > table.closest('.scroll').clientWidth + 1 && !table.closest('details')).length + "
    "(document.documentElement.scrollWidth > window.innerWidth ? 1 : 0);</script>";

/// A data attribute of the root element, from the browser's DOM after the page's scripts and `script` ran.
std::string from_page(const Report& report, const std::string& attribute, int width = 1200,
                      const std::string& script = "") {
  const fs::path folder = fs::temp_directory_path() / ("wt_page_" + std::to_string(std::random_device{}()));
  fs::create_directories(folder);
  std::ofstream(folder / "page.html") << html_report(report) << kCutOff << "<script>" << script << "</script>";
  const std::string command =
      "timeout 120 chromium --headless=new --no-sandbox --disable-gpu --window-size=" + std::to_string(width) +
      ",2000 --user-data-dir=" + (folder / "profile").string() + " --dump-dom file://" +
      (folder / "page.html").string() + " 2>/dev/null";
  std::string dom;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) dom.append(buffer, n);
  pclose(pipe);
  fs::remove_all(folder);
  const std::string mark = "data-" + attribute + "=\"";
  const std::size_t at = dom.find(mark);
  INFO("the page's script did not run to its end");
  REQUIRE(at != std::string::npos);
  const std::size_t from = at + mark.size();
  return dom.substr(from, dom.find('"', from) - from);
}

/// The page's own count, "7 drawn, 0 failed".
std::string drawn(const Report& report) { return from_page(report, "charts"); }

Chart odd(ChartKind kind, std::vector<std::string> labels, std::vector<Series> series) {
  return {.kind = kind, .labels = std::move(labels), .series = std::move(series)};
}

}  // namespace

TEST_CASE("a browser draws every chart") {
  if (!has_program("chromium")) return;
  CHECK(drawn(fixture::report()) == "7 drawn, 0 failed");
}

TEST_CASE("a browser draws charts of nothing, of gaps and of one point") {
  if (!has_program("chromium")) return;
  Report report;
  report.sections = {{"odd", "Odd", {}, {}}};
  std::size_t charts = 0;
  for (ChartKind kind : {ChartKind::bar, ChartKind::grouped_bar, ChartKind::stacked_bar, ChartKind::line,
                         ChartKind::waterfall, ChartKind::tornado}) {
    report.sections[0].items.push_back(odd(kind, {}, {}));
    report.sections[0].items.push_back(
        odd(kind, {"a", "a"}, {{.name = "s", .values = {kNan, 1}, .low = {kNan, 1}, .high = {kNan, 1}}}));
    report.sections[0].items.push_back(
        odd(kind, {"</script>"}, {{.name = "s", .values = {0}, .low = {0}, .high = {0}}}));
    report.sections[0].items.push_back(odd(kind, {}, {{.name = "s"}}));
    charts += 4;
  }
  report.sections[0].items.push_back(odd(ChartKind::timeline, {}, {}));
  report.sections[0].items.push_back(
      odd(ChartKind::timeline, {std::string(300, 'x')}, {{.name = "s", .spans = {{0, 1, 1, "op"}}}}));
  CHECK(drawn(report) == std::to_string(charts + 2) + " drawn, 0 failed");
}

TEST_CASE("nothing is cut off, neither on a screen nor on a phone") {
  if (!has_program("chromium")) return;
  Report report = fixture::report();
  Table wide{.title = "Eleven columns", .columns = {{"layout"}, {"recompute"}}};
  for (const char* name : {"microbatch", "step", "80 % interval", "bound", "exposed", "tokens/s/GPU", "MFU", "memory"})
    wide.columns.push_back({name, "s", Align::right});
  wide.columns.push_back({""});
  wide.rows = {{"16x192 expert 8", "attention+experts", "2", "5.589", "4.50 to 8.49", "5.426", "0.2307", "1,466",
                "32.77", "78.87", Cell("chosen", Status::good)}};
  report.sections.push_back({"wide", "Wide", {}, {std::move(wide)}});
  for (const int width : {1200, 500}) {  // no window of a headless browser is narrower
    const std::string cut = from_page(report, "cut", width);
    INFO(width);
    CHECK(cut == "0");
  }
}

TEST_CASE("a browser draws points, bands and marks over a long axis") {
  if (!has_program("chromium")) return;
  Chart chart{.kind = ChartKind::line, .title = "loss"};
  Series line{.name = "loss"}, lost{.name = "lost", .points = true};
  for (int i = 0; i < 600; ++i) {
    chart.x.push_back(i);
    line.values.push_back(1), line.low.push_back(0), line.high.push_back(2);
    lost.values.push_back(i % 100 == 50 ? 3 : kNan);
  }
  chart.series = {line, lost};
  chart.marks = {{0, "at the first"}, {300, "</script>"}, {599, "at the last"}};
  chart.marks_name = "resumed";
  Report report;
  report.sections = {{"s", "S", {}, {chart, odd(ChartKind::line, {}, {})}}};
  CHECK(drawn(report) == "2 drawn, 0 failed");
}

TEST_CASE("a browser draws named positions, and charts of a folded section") {
  if (!has_program("chromium")) return;
  Chart chart = odd(ChartKind::line, {"3bf5f97a", "180cc551"}, {{.name = "s", .values = {1, 2}}});
  chart.x = {1, 2};
  chart.named_x = true;
  Report report;
  report.sections = {{.id = "s", .title = "S", .items = {chart}, .folded = true}};
  CHECK(drawn(report) == "1 drawn, 0 failed");
}

namespace {

/// 16 and 32 GPUs with batches of 64 and 128 sequences; 32 GPUs with 128 have no plan.
Report explored() {
  const auto row = [](double gpus, double batch, double days, double low, double high, double hours) {
    return std::vector<Cell>{gpus, batch, days, low, high, hours, 1.25 * hours, Cell("HSDP")};
  };
  Table table{.title = "Rows",
              .columns = {numeric("GPUs"), numeric("batch"), numeric("finish", "days"), "low", "high", "hours",
                          "hours, P95", "layout"},
              .rows = {row(16, 64, 10, 8, 13, 4000),
                       row(16, 128, 9, 7, 12, 3500),
                       row(32, 64, 5.5, 4, 7, 4200),
                       {32.0, 128.0, "-", "-", "-", "-", "-", Cell("does not fit", Status::bad)}},
              .explore = Explore{.choices = {0, 1},
                                 .middle = 2,
                                 .low = 3,
                                 .high = 4,
                                 .paid = 5,
                                 .paid_high = 6,
                                 .words = 7,
                                 .currency = "USD",
                                 .limit = 7}};
  Report report;
  report.sections = {{.id = "s", .title = "S", .items = {std::move(table)}, .folded = true}};
  return report;
}

/// What the page says after its reader has set these controls.
std::string said_of(const std::string& set) {
  return from_page(
      explored(), "said", 1200,
      "const set = (id, value) => { const input = document.getElementById('0/0-' + id); input.value = value; "
      "input.dispatchEvent(new Event('input')); };" +
          set +
          "document.documentElement.dataset.said = document.querySelector('.result').textContent + ' ' + "
          "document.querySelector('tr[aria-current]').rowIndex;");
}

}  // namespace

TEST_CASE("a reader moves among rows, and sees the row's own numbers and no others") {
  if (!has_program("chromium")) return;
  CHECK_THAT(said_of(""), Catch::Contains("10 days; 8 to 13 days in 90 %") &&
                              Catch::Contains("missed: 95 % of the runs") &&
                              Catch::Contains("no price is given; 4,000 GPU-hours") && Catch::EndsWith("HSDP 1"));
  CHECK_THAT(said_of("set('0', 1);"), Catch::Contains("5.5 days; 4 to 7 days in 90 %") &&
                                          Catch::Contains("met: 95 % of the runs take at most 7 days"));
  CHECK_THAT(said_of("set('0', 1); set('1', 1);"), Catch::EndsWith("no plandoes not fit 4"));
}

TEST_CASE("a reader's price is multiplied with the row's hours, and the deadline compared") {
  if (!has_program("chromium")) return;
  CHECK_THAT(said_of("set('price', 2.5); set('limit', 13);"),
             Catch::Contains("10,000 USD (P50; P95 12,500 USD)") && Catch::Contains("met"));
  CHECK_THAT(said_of("set('limit', '');"), Catch::Contains("deadlinenone is given"));
}

TEST_CASE("every control is a labelled input, which the keyboard reaches") {
  if (!has_program("chromium")) return;
  CHECK(from_page(
            explored(), "inputs", 1200,
            "document.documentElement.dataset.inputs = [...document.querySelectorAll('.explore input')].map(input => "
            "input.type + (input.labels.length === 1 && input.tabIndex === 0 ? '' : ' unreached')).join(', ');") ==
        "range, range, number, number");
}
