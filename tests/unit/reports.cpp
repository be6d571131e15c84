#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "configs/base/error.hpp"
#include "reports/render/render.hpp"
#include "reports/render/terminal.hpp"
#include "reports/render/text_report.hpp"
#include "reports/render/write.hpp"
#include "tests/fixtures/golden.hpp"
#include "tests/unit/report_fixture.hpp"

using namespace wt;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

void approve(const std::string& name, const std::string& text) {
  CHECK(text == test::golden("tests/golden/" + name, text));
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find(to, begin + from.size());
  REQUIRE(end != std::string::npos);
  return text.substr(begin + from.size(), end - begin - from.size());
}

Report with(Item item) {
  Report report;
  report.sections = {{"one", "One", {}, {std::move(item)}}};
  return report;
}

}  // namespace

TEST_CASE("each format says what was approved") {
  approve("report.txt", text_report(fixture::report()));
  approve("report.md", markdown_report(fixture::report()));
  approve("report.json", json_text(report_json(fixture::report())));
}

TEST_CASE("a report read back from its twin is the same report") {
  const json twin = report_json(fixture::report());
  const Report again = report_from_json(json::parse(json_text(twin)), "report.json");
  CHECK(report_json(again) == twin);
  CHECK(html_report(again) == html_report(fixture::report()));
}

TEST_CASE("a twin with an unknown key, kind or schema is refused by name") {
  json twin = report_json(fixture::report());
  twin["sections"][0]["items"][0]["kind"] = "pie";
  CHECK_THROWS_WITH(report_from_json(twin, "r.json"),
                    Catch::Contains("/sections/0/items/0/kind") && Catch::Contains("pie"));
  twin = report_json(fixture::report());
  twin["schema"] = "windtunnel.report/9";
  CHECK_THROWS_WITH(report_from_json(twin, "r.json"), Catch::Contains("windtunnel.report/9"));
  twin = report_json(fixture::report());
  twin["anwser"] = "";
  CHECK_THROWS_WITH(report_from_json(twin, "r.json"), Catch::Contains("anwser") && Catch::Contains("answer"));
}

TEST_CASE("the page embeds the twin it was made from") {
  const std::string page = html_report(fixture::report());
  const std::string twin = between(page, "<script type=\"application/json\" id=\"report-data\">", "</script>");
  CHECK(twin.find('<') == std::string::npos);
  CHECK(json::parse(twin) == report_json(fixture::report()));
}

TEST_CASE("the page loads nothing") {
  const std::string page = html_report(fixture::report());
  const std::string twin = between(page, "id=\"report-data\">", "</script>");
  const std::regex load(
      R"re((src|href|action|data|poster)\s*=\s*["']?\s*(https?:)?//|url\(|@import|<link|<img|<iframe|fetch\(|XMLHttpRequest|import\()re");
  CHECK_FALSE(std::regex_search(page, load));
  CHECK(std::regex_search(std::string("<script src=\"https://x\">"), load));
  CHECK(page.find("Chart.js v3.9") != std::string::npos);
}

TEST_CASE("every chart has a canvas and its numbers as a table") {
  const std::string page = html_report(fixture::report());
  std::size_t charts = 0;
  for (const Section& section : fixture::report().sections)
    for (const Item& item : section.items) charts += std::holds_alternative<Chart>(item);
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++n;
    return n;
  };
  CHECK(count("<canvas data-chart=") == charts);
  CHECK(count("<details><summary>Numbers") == charts);
  CHECK(charts == 7);
}

TEST_CASE("no text of a report is read as markup") {
  const std::string evil = "<script>alert('&\"')</script>";
  Report report = fixture::report();
  report.title = report.answer = report.answer_range = evil;
  report.sections[0].title = evil;
  report.sections[0].paragraphs = {evil};
  report.sections[0].items = {Callout{Status::warn, evil, evil}, KeyValues{evil, {{evil, evil}}},
                              Table{evil, {{evil, evil, Align::left}}, {{evil}}, evil},
                              waterfall(evil, evil, {evil, 1}, {}, evil)};
  const std::string page = html_report(report), markdown = markdown_report(report);
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("&lt;script&gt;alert(&apos;&amp;&quot;&apos;)&lt;/script&gt;") != std::string::npos);
  CHECK(markdown.find("<script>") == std::string::npos);
}

TEST_CASE("a name cannot break a Markdown table nor steer a terminal") {
  const Report report = with(Table{"", {{"a|b", "", Align::left}}, {{"x|y\nz"}, {"\x1b[31mred\x07 \xC2\x9B"}}, ""});
  CHECK_THAT(markdown_report(report), Catch::Contains("| a\\|b |") && Catch::Contains("| x\\|y z |"));
  const std::string text = text_report(report);
  CHECK_THAT(text, Catch::Contains("?[31mred? ?"));
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("text has colour only when asked, and colour changes nothing else") {
  const std::string plain = text_report(fixture::report()), painted = text_report(fixture::report(), {.color = true});
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(painted.find("\x1b[31m") != std::string::npos);
  CHECK(std::regex_replace(painted, std::regex("\x1b\\[[0-9]*m"), "") == plain);
}

TEST_CASE("colour: flag before environment before terminal") {
  CHECK(use_color(Color::always, -1));
  CHECK_FALSE(use_color(Color::never, 1));
  CHECK_FALSE(use_color(Color::automatic, -1));
}

TEST_CASE("text columns align by code point, not by byte") {
  const std::string text =
      text_table({"", {{"a", "", Align::left}, {"b", "", Align::right}}, {{"äöü", 1.0}, {"x", 22.0}}, ""});
  CHECK(text == "  a     b\n  äöü   1\n  x    22\n");
}

TEST_CASE("a long value wraps beside its key; a shorter one stays in a line") {
  const std::string words = "many words of a value that goes on and on ";
  const std::string longer = words + words + words + words + words;
  const std::string text = text_report(with(KeyValues{"", {{"key", longer}, {"other", words + words + words}}}));
  CHECK_THAT(text,
             Catch::Contains("\n  key    many words") && Catch::Contains(" and on many\n         words of a value"));
  CHECK_THAT(text, Catch::Contains("\n  other  " + words + words + words.substr(0, words.size() - 1)));
}

TEST_CASE("of a long timeline people get the beginning and machines get all") {
  Chart chart{.kind = ChartKind::timeline, .labels = {"lane"}, .series = {{.name = "s"}}};
  for (int i = 0; i < 3000; ++i) chart.series[0].spans.push_back({0, i * 1.0, i + 1.0, "op" + std::to_string(i)});
  CHECK_THAT(markdown_report(with(chart)),
             Catch::Contains("| op99 |") && !Catch::Contains("| op100 |") && Catch::Contains("100 of 3000"));
  CHECK_THAT(text_report(with(chart)),
             Catch::Contains("op19 ") && !Catch::Contains("op20 ") && Catch::Contains("2980 more"));
  CHECK_THAT(html_report(with(chart)), Catch::Contains(">op1999</td>") && !Catch::Contains(">op2000</td>"));
  CHECK(report_json(with(chart))["sections"][0]["items"][0]["series"][0]["spans"].size() == 3000);
}

TEST_CASE("a wide table's cells carry their column's name, for cards on a phone; a narrow one's do not") {
  const Table wide{.columns = {{"a"}, {"b", "s"}, {"c"}, {"d"}, {"e"}}, .rows = {{"1", "2", "-", "", "5"}}};
  const std::string page = html_report(with(wide));
  CHECK_THAT(page, Catch::Contains("<table class=\"cards\">") && Catch::Contains("<td data-label=\"a\">1</td>") &&
                       Catch::Contains("<td data-label=\"b [s]\">2</td>") &&
                       Catch::Contains("<td class=\"nothing\" data-label=\"c\">-</td>"));
  CHECK_THAT(html_report(with(Table{.columns = {{"a"}, {"b"}}, .rows = {{"1", "2"}}})),
             Catch::Contains("<td>1</td><td>2</td>"));
}

TEST_CASE("a shaded cell keeps its shade in page and twin, and is a plain cell for terminals") {
  Cell dark(3.5);
  dark.heat = 0.75;
  const Report report = with(Table{.columns = {{"a"}, {"b", "", Align::right}}, .rows = {{"x", dark}}});
  CHECK_THAT(html_report(report), Catch::Contains("<td class=\"right\" style=\"--heat:0.75\">3.5</td>") &&
                                      Catch::Contains("<table class=\"shaded\">"));
  const Report again = report_from_json(report_json(report), "r");
  CHECK(std::get<Table>(again.sections[0].items[0]).rows[0][1].heat == 0.75);
  CHECK_THAT(text_report(report), Catch::Contains("x  3.5"));
}

TEST_CASE("an empty report and empty items render in every format") {
  Report report;
  CHECK_NOTHROW(html_report(report));
  CHECK(json::parse(json_text(report_json(report)))["sections"].empty());
  for (Item item :
       {Item(Table{}), Item(Chart{}), Item(KeyValues{}), Item(Callout{}), Item(Chart{.kind = ChartKind::timeline})}) {
    report = with(item);
    CHECK_NOTHROW(html_report(report));
    CHECK_NOTHROW(text_report(report));
    CHECK_NOTHROW(markdown_report(report));
    CHECK(report_json(report_from_json(report_json(report), "r")) == report_json(report));
  }
}

TEST_CASE("what is not finite is n/a for people and null for machines") {
  Chart chart;
  chart.labels = {"a"};
  chart.series = {{.name = "s", .values = {INFINITY}}};
  const json twin = report_json(with(chart));
  CHECK(twin["sections"][0]["items"][0]["series"][0]["values"][0].is_null());
  CHECK_THAT(text_report(with(chart)), Catch::Contains("n/a"));
  CHECK_FALSE(Cell(NAN).number);
}

TEST_CASE("controls above a table are part of the twin, and are read again") {
  const Report report =
      with(Table{.columns = {"GPUs", "days"},
                 .rows = {{"16", "9"}, {"32", "5"}},
                 .explore = Explore{.choices = {0}, .middle = 1, .start = 1, .price = 2.5, .limit = 7}});
  const json twin = report_json(report);
  CHECK(twin["sections"][0]["items"][0]["explore"]["limit"] == 7);
  CHECK(report_json(report_from_json(twin, "twin")) == twin);
  CHECK_THAT(html_report(report), Catch::Contains("data-explore=\"0/0\""));
}

TEST_CASE("bytes that are not UTF-8 do not stop a report") {
  Report report = with(Callout{Status::none, "bad \xff byte", ""});
  CHECK(json::parse(json_text(report_json(report)))["sections"][0]["items"][0]["title"] == "bad \xEF\xBF\xBD byte");
  CHECK_NOTHROW(html_report(report));
}

TEST_CASE("a report that does not hold together is refused, with the place") {
  CHECK_THROWS_WITH(check(with(Table{"t", {{"a", "", Align::left}}, {{"x", "y"}}, ""})),
                    Catch::Contains("one, table 't'") && Catch::Contains("2 cells"));
  Table explored{.title = "t", .columns = {"a"}, .rows = {{"x"}}, .explore = Explore{.choices = {1}}};
  CHECK_THROWS_WITH(check(with(explored)), Catch::Contains("column 1 to explore, allowed are those below 1"));
  explored.explore = Explore{.start = 1};
  CHECK_THROWS_WITH(check(with(explored)), Catch::Contains("row 1 to start at"));
  Chart chart;
  chart.title = "c";
  chart.labels = {"a", "b"};
  chart.series = {{.name = "s", .values = {1}}};
  CHECK_THROWS_WITH(check(with(chart)), Catch::Contains("series 's'") && Catch::Contains("1 values, allowed 2"));
  chart.series = {{.name = "s", .values = {1, 2}, .low = {1}, .high = {2, 3}}};
  CHECK_THROWS_WITH(check(with(chart)), Catch::Contains("1 low ends"));
  chart.kind = ChartKind::timeline;
  chart.series = {{.name = "s", .spans = {{2, 0, 1, "op"}}}};
  CHECK_THROWS_WITH(check(with(chart)), Catch::Contains("'op' on row 2"));
  chart.series = {{.name = "s", .spans = {{0, 1, 0, "op"}}}};
  CHECK_THROWS_WITH(check(with(chart)), Catch::Contains("from 1 to 0"));
  chart.labels = {"a", "a"};
  CHECK_THROWS_WITH(check(with(chart)), Catch::Contains("2 labels of which 1 differ"));
  Report twice;
  twice.sections = {{"a", "A", {}, {}}, {"a", "B", {}, {}}};
  CHECK_THROWS_WITH(check(twice), Catch::Contains("'a' twice"));
  for (const char* id : {"", "A b", "x\"y", "provenance"}) {
    twice.sections = {{id, "A", {}, {}}};
    CHECK_THROWS_AS(check(twice), Error);
  }
}

TEST_CASE("a report file that does not hold together is the file's mistake, not ours") {
  json twin = report_json(fixture::report());
  twin["sections"].push_back(twin["sections"][0]);
  try {
    report_from_json(twin, "r.json");
    FAIL("it was read");
  } catch (const Error& e) {
    CHECK(e.code() == Code::usage);
    CHECK_THAT(e.what(), Catch::StartsWith("r.json: ") && Catch::Contains("twice, allowed once"));
  }
}

TEST_CASE("every renderer refuses a report that does not hold together") {
  const Report longer = with(Table{"t", {{"a", "", Align::left}}, {{"x", "y"}}, ""});
  for (const auto& render : {std::function<void()>([&] { html_report(longer); }),
                             {[&] { markdown_report(longer); }},
                             {[&] { text_report(longer); }},
                             {[&] { report_json(longer); }}})
    CHECK_THROWS_WITH(render(), Catch::Contains("table 't'") && Catch::Contains("2 cells"));
}

TEST_CASE("numbers have four digits, commas and no needless exponent") {
  CHECK(format_number(0) == "0");
  CHECK(format_number(3.14159) == "3.142");
  CHECK(format_number(-0.00012345) == "-0.0001234");
  CHECK(format_number(999.9) == "999.9");
  CHECK(format_number(999.96) == "1,000");
  CHECK(format_number(1234.5) == "1,234");
  CHECK(format_number(-1234567) == "-1,234,567");
  CHECK(format_number(2e-7) == "2.000e-07");
  CHECK(format_number(NAN) == "n/a");
  CHECK(format_range(5.2449, 10.3) == "5.24 to 10.30");
  CHECK(format_range(0.0123, 0.0149) == "0.0123 to 0.0149");
  CHECK(format_range(36.04, 41.27) == "36.0 to 41.3");
  CHECK(format_range(123.4, 1234.5) == "123 to 1234");
  CHECK(format_range(0, 0.5) == "0 to 0.5");
  CHECK(format_range(1234, 2345) == "1,234 to 2,345");
}

TEST_CASE("a waterfall's bars hang together and end at the sum") {
  const Chart chart = waterfall("w", "%", {"ideal", 100}, {{"lost", -30}, {"won", 5}}, "left");
  CHECK(chart.labels == std::vector<std::string>{"ideal", "lost", "won", "left"});
  CHECK(chart.series[0].values == std::vector<double>{100, -30, 5, 75});
  CHECK(chart.series[0].low == std::vector<double>{0, 70, 70, 0});
  CHECK(chart.series[0].high == std::vector<double>{100, 100, 75, 75});
}

TEST_CASE("a tornado has the widest swing on top and hangs on the baseline") {
  const Chart chart = tornado("t", "days", {3, "plan"}, {{"small", 2.9, 3.1}, {"wide", 2, 5}, {"one side", 3.5, 3.2}});
  CHECK(chart.labels == std::vector<std::string>{"wide", "one side", "small"});
  CHECK(chart.series[0].low == std::vector<double>{2, 3, 2.9});
  CHECK(chart.series[0].high == std::vector<double>{3, 3.5, 3});
  CHECK(chart.series[1].high == std::vector<double>{5, 3.2, 3.1});
}

TEST_CASE("write_report leaves three files, or says why not") {
  const fs::path folder = fs::temp_directory_path() / ("wt_reports_" + std::to_string(std::random_device{}()));
  const auto files = write_report(fixture::report(), folder / "deep", "capacity");
  REQUIRE(files.size() == 3);
  CHECK(test::read_bytes(folder / "deep/capacity.html") == html_report(fixture::report()));
  CHECK(json::parse(test::read_bytes(folder / "deep/capacity.json")) == report_json(fixture::report()));
  CHECK(test::read_bytes(folder / "deep/capacity.md") == markdown_report(fixture::report()));
  CHECK(std::distance(fs::directory_iterator(folder / "deep"), {}) == 3);
  for (const char* name : {"", "..", "a/b"}) CHECK_THROWS_AS(write_report(fixture::report(), folder, name), Error);
  CHECK_THROWS_AS(write_report(fixture::report(), folder / "deep/capacity.md", "x"), Error);
  fs::remove_all(folder);
}

TEST_CASE("a folded section opens on a page, is folded in Markdown, and stays in the twin") {
  Report report = with(KeyValues{"", {{"key", "value"}}});
  CHECK(html_report(report).find("<details class=\"fold\">") == std::string::npos);
  report.sections[0].folded = true;
  CHECK_THAT(html_report(report), Catch::Contains("<details class=\"fold\"><summary><h2>One</h2></summary>"));
  CHECK_THAT(markdown_report(report), Catch::Contains("<details><summary><b>One</b></summary>") &&
                                          Catch::Contains("- key: value\n\n</details>"));
  const json twin = report_json(report);
  CHECK(twin["sections"][0]["folded"] == true);
  CHECK(report_json(report_from_json(twin, "r.json")) == twin);
  CHECK(text_report(report) == text_report(with(KeyValues{"", {{"key", "value"}}})));
}

TEST_CASE("positions of a line may have names, one for each") {
  Chart chart{
      .kind = ChartKind::line, .labels = {"a1", "b2"}, .series = {{.name = "s", .values = {3, 4}}}, .x = {1, 2}};
  chart.named_x = true;
  CHECK(chart_table(chart).rows[1][0].text == "b2");
  const json twin = report_json(with(chart));
  CHECK(twin["sections"][0]["items"][0]["named_x"] == true);
  CHECK(report_json(report_from_json(twin, "r.json")) == twin);
  chart.labels.pop_back();
  CHECK_THROWS_WITH(check(with(chart)), Catch::Contains("labels of x positions"));
}

TEST_CASE("short times are drawn in a unit that can be read") {
  const auto unit_of = [](double s) {
    const Chart chart = in_readable_unit({.unit = "s", .series = {{.name = "t", .values = {s, s / 2}}}});
    return std::pair(chart.unit, chart.series[0].values[0]);
  };
  CHECK(unit_of(12) == std::pair<std::string, double>("s", 12));
  CHECK(unit_of(0.25).first == "ms");
  CHECK(unit_of(0.25).second == Approx(250));
  CHECK(unit_of(2.5e-5).first == "us");
  CHECK(unit_of(2.5e-5).second == Approx(25));
  CHECK(unit_of(3e-9).first == "ns");
  CHECK(unit_of(0).first == "s");
  const double gap = std::numeric_limits<double>::quiet_NaN();
  const Chart others = in_readable_unit({.unit = "GiB", .series = {{.name = "m", .values = {0.01, gap}}}});
  CHECK(others.unit == "GiB");
  CHECK(others.series[0].values[0] == 0.01);
}

TEST_CASE("marks stand on x positions alone") {
  Chart chart{.kind = ChartKind::line, .labels = {"a"}, .series = {{.name = "s", .values = {1}}}, .marks = {{1, "m"}}};
  Report report;
  report.sections = {{"s", "S", {}, {chart}}};
  CHECK_THROWS_WITH(check(report), Catch::Contains("found marks on labels"));
  chart.labels.clear(), chart.x = {1}, chart.marks_name = "resumed";
  report.sections[0].items = {chart};
  CHECK_NOTHROW(check(report));
  CHECK(chart_table(chart).note == "resumed: at 1");
}

TEST_CASE("of a long chart evenly spaced points stand for all, with the first and the last") {
  Chart chart{.kind = ChartKind::line, .series = {{.name = "s"}}};
  for (int i = 0; i < 101; ++i) chart.x.push_back(i), chart.series[0].values.push_back(i);
  const Table table = chart_table(chart, 11);
  REQUIRE(table.rows.size() == 11);
  for (std::size_t i = 0; i < 11; ++i) CHECK(table.rows[i][0].number == 10.0 * static_cast<double>(i));
  CHECK(table.note == "11 of 101 points; the JSON has all");
  CHECK(chart_table(chart, 101).rows.size() == 101);
  CHECK(chart_table(chart).note.empty());
}
