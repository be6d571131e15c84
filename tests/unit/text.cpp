#include "configs/base/text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/base/utf8.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Contains;
using namespace wt;

TEST_CASE("one node, two nodes, H100 in lower case") {
  CHECK(counted(1, "node") == "1 node");
  CHECK(counted(0, "node") == "0 nodes");
  CHECK(lower("H100-SXM") == "h100-sxm");
}

TEST_CASE("a foreign text is cut between characters") {
  CHECK(shortened(std::string(200, 'x')) == std::string(200, 'x'));
  CHECK(shortened(std::string(201, 'x')) == std::string(200, 'x') + "... (201 bytes)");
  for (const char* wide : {"\u00e9", "\u20ac", "\U0001f600"})
    for (std::size_t before = 195; before <= 200; ++before) {
      const std::string said = shortened(std::string(before, 'x') + wide + std::string(9, 'x'));
      CHECK(is_utf8(said));
      CHECK(said.size() > before);
    }
}

TEST_CASE("a file is read whole, an empty one too; a folder and no file are refused") {
  const test::TempDirectory folder;
  test::write_bytes(folder / "text", std::string("a\0b\n", 4));
  test::write_bytes(folder / "empty", "");
  CHECK(read_file(folder / "text", "text") == std::string("a\0b\n", 4));
  CHECK(read_file(folder / "empty", "text").empty());
  CHECK_THAT(test::usage_error([&] { read_file(folder / "none", "a study file"); }),
             Contains("none: cannot be read; needs a study file"));
  CHECK_THAT(test::usage_error([&] { read_file(folder.path(), "text"); }), Contains("cannot be read"));
  CHECK_THAT(test::usage_error([&] { read_file(std::string(5000, 'n'), "text"); }), Contains("nnn... (5000 bytes)"));
}

TEST_CASE("an error fits a screen: of a long one its begin and its end") {
  CHECK(fitting(std::string(4000, 'x')) == std::string(4000, 'x'));
  const std::string said = fitting(fmt::format("begin {} end", std::string(100'000, 'x')));
  CHECK(said.size() < 4100);
  CHECK(said.starts_with("begin x"));
  CHECK(said.ends_with("x end"));
  CHECK_THAT(said, Contains("(96010 bytes)"));
}

TEST_CASE("bytes that are no UTF-8 are told from text") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("gr\xc3\xbcn \xf0\x9f\x98\x80"));
  for (const char* bytes : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf", "\x80"}) CHECK_FALSE(is_utf8(bytes));
}

TEST_CASE("JSON deeper than anybody writes is refused before anything calls itself for each level") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK_FALSE(too_deep(nested(kDeepestJson)));
  CHECK(too_deep(nested(kDeepestJson + 1)));
  CHECK(too_deep(fmt::format("{{\"a\":{}", nested(kDeepestJson))));
  CHECK_FALSE(too_deep(fmt::format("\"{}\"", nested(1000))));      // in a string
  CHECK_FALSE(too_deep(fmt::format("\"\\\"{}\"", nested(1000))));  // behind a quote in a string
  CHECK(lax_json(nested(1'000'000)).is_discarded());
  CHECK(lax_json("{\"a\": 1, \"a\": 2}").at("a") == 2);
  CHECK(lax_json("{").is_discarded());
  CHECK_THAT(test::usage_error([&] { parse_json(nested(1'000'000), "f.json"); }),
             Contains("f.json: found objects and lists in more than 200 levels"));
}
