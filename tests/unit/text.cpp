#include "configs/spec/support/text.hpp"

#include <catch2/catch.hpp>

#include "tests/support/temp_directory.hpp"
#include "tests/support/usage_error.hpp"

using Catch::Contains;
using namespace wt;

TEST_CASE("one node, two nodes, H100 in lower case") {
  CHECK(counted(1, "node") == "1 node");
  CHECK(counted(0, "node") == "0 nodes");
  CHECK(lower("H100-SXM") == "h100-sxm");
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
