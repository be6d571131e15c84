#include <pty.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <random>
#include <sstream>

#include "reports/render/column_blocks.hpp"
#include "reports/render/terminal.hpp"
#include "reports/render/text_lines.hpp"
#include "reports/render/text_report.hpp"

using namespace wt;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const Table& table, std::size_t width) {
  return text_table(table, {.width = std::min<std::size_t>(100, width), .table_width = width});
}

std::string random_words(std::mt19937& random) {
  std::string text;
  for (std::size_t words = random() % 9; words > 0; --words)
    text +=
        (text.empty() ? "" : " ") + std::string(1 + random() % (random() % 8 == 0 ? 70 : 12), "aeioux"[random() % 6]);
  return text;
}

Table random_table(std::mt19937& random) {
  Table table{.title = random_words(random)};
  for (std::size_t columns = 1 + random() % 12; columns > 0; --columns)
    table.columns.push_back({random_words(random), random() % 2 ? "s" : "", random() % 2 ? Align::right : Align::left});
  for (std::size_t rows = random() % 6; rows > 0; --rows) {
    table.rows.emplace_back();
    for (const Column& column : table.columns)
      table.rows.back().push_back(column.align == Align::right ? Cell(double(random()) / 1e5, Evidence::measured)
                                                               : Cell(random_words(random)));
  }
  return table;
}

/// How often each character that is not blank stands in a text.
std::map<char, std::size_t> letters(const std::string& text) {
  std::map<char, std::size_t> counts;
  for (char c : text)
    if (c != ' ' && c != '\n') ++counts[c];
  return counts;
}

}  // namespace

TEST_CASE("no line of a table is wider than the terminal, and no letter is lost") {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Table table = random_table(random);
    const std::size_t width = kLeastTableWidth + random() % 120;
    const std::string folded = text_of(table, width);
    INFO(width << "\n" << folded);
    for (const std::string& line : lines_of(folded)) CHECK(text_width(line) <= width);
    const auto all = letters(text_table(table)), shown = letters(folded);
    for (const auto& [letter, count] : all) CHECK((shown.contains(letter) && shown.at(letter) >= count));
  }
}

TEST_CASE("a table that fits is the same on a terminal") {
  const Table table{"", {{"name"}, numeric("step", "s")}, {{"first", 1.0}, {"a longer one", 22.0}}, ""};
  CHECK(text_of(table, 80) == text_table(table));
}

TEST_CASE("a long text wraps in its column") {
  const Table table{"", {numeric("n"), {"why"}}, {{1.0, "one two three four five six seven eight nine ten"}}, ""};
  CHECK(text_of(table, 40) ==
        "  n  why\n"
        "  1  one two three four five six seven\n"
        "     eight nine ten\n");
}

TEST_CASE("columns without room stand below, next to the first one") {
  Table table{"", {{"name"}}, {{"run"}}, ""};
  for (const char* name : {"alpha", "beta", "gamma", "delta", "epsilon"}) {
    table.columns.push_back(numeric(name));
    table.rows[0].push_back(Cell(1.0, "12345678"));
  }
  CHECK(text_of(table, 40) ==
        "  name     alpha      beta     gamma\n"
        "  run   12345678  12345678  12345678\n"
        "\n"
        "  name     delta   epsilon\n"
        "  run   12345678  12345678\n");
}

TEST_CASE("a terminal has the width that it was given, and what is none has no width") {
  int leader = -1, terminal = -1;
  winsize size{.ws_row = 24, .ws_col = 77, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(openpty(&leader, &terminal, nullptr, nullptr, &size) == 0);
  unsetenv("COLUMNS");
  CHECK(terminal_width(terminal) == 77);
  setenv("COLUMNS", "132", 1);
  CHECK(terminal_width(terminal) == 132);
  CHECK(terminal_width(-1) == 0);
  setenv("COLUMNS", "wide", 1);
  CHECK(terminal_width(terminal) == 77);
  unsetenv("COLUMNS");
  close(leader);
  close(terminal);
}
