// The one door of every YAML file: one document, each key once, no text that unfolds without end.
#include "configs/base/yaml.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "configs/base/yaml_repeats.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Contains;
using namespace wt;

namespace {

std::string refusal(const std::string& text) {
  return test::usage_error([&] { YamlMap::from_text(text, "f.yaml"); });
}

}  // namespace

TEST_CASE("a key said twice is refused with both lines, at every depth") {
  CHECK_THAT(refusal("a: 1\nb: 2\na: 3\n"), Contains("f.yaml:3: a: found a second time, first in line 1"));
  CHECK_THAT(refusal("m:\n  - {x: 1}\n  - {x: 1, x: 2}\n"), Contains("f.yaml:3: x: found a second time"));
  CHECK(refusal("m: {a: 1}\nn: {a: 1}\n") == "no error");
}

TEST_CASE("a key said twice in another program's file is told where its values differ") {
  std::set<std::string> repeats;
  load_yaml_with_repeats("m: {a: 1, b: 2, a: 1}\nc: x\nc: y\n", "f.yaml", repeats);
  CHECK(repeats == std::set<std::string>{"c: found in line 2 and with another value in line 3, which holds"});
  CHECK_THROWS_WITH(load_yaml_with_repeats("m: {<<: {a: 1}, <<: {b: 2}}\n", "f.yaml", repeats),
                    Contains("<<: found a second time"));
}

TEST_CASE("one document a file") {
  CHECK_THAT(refusal("a: 1\n---\na: 2\n"), Contains("f.yaml:2: found a second YAML document"));
  CHECK(refusal("---\na: 1\n") == "no error");
  CHECK(refusal("# of a run\n%YAML 1.2\n--- \na: |\n  x\n  ---\nb: ---x\n") == "no error");
  CHECK_THAT(refusal(""), Contains("found nothing, needs a map"));
}

TEST_CASE("keys are words, and aliases stand for a few values") {
  CHECK_THAT(refusal("[1, 2]: 3\n"), Contains("found a key that is no word"));
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    laughs += fmt::format("a{0}: &a{0} [*a{1}", i, i - 1);
    for (int k = 1; k < 10; ++k) laughs += fmt::format(", *a{}", i - 1);
    laughs += "]\n";
  }
  CHECK_THAT(refusal(laughs), Contains("found more than 5000000 values"));
  CHECK_THAT(refusal(fmt::format("a: {}{}\n", std::string(200, '['), std::string(200, ']'))),
             Contains("in more than 100 levels"));
  CHECK(refusal("base: &b {x: 1}\nuse: *b\n") == "no error");
}

TEST_CASE("a word in quotes is no flag") {
  YamlMap map = YamlMap::from_text("a: \"true\"\nb: true\n", "f.yaml");
  CHECK(map.boolean("b", false));
  CHECK_THAT(test::usage_error([&] { map.boolean("a", false); }),
             Contains("f.yaml:1: a: found 'true', needs true or false"));
}

TEST_CASE("references that double with each line end soon, as texts and as lists") {
  for (const bool lists : {false, true}) {
    std::string text = lists ? "a0: [x, x]\n" : "a0: xxxxxxxx\n";
    for (int i = 1; i < 30; ++i) {
      const std::string before = fmt::format("${{a{}}}", i - 1);
      text += lists ? fmt::format("a{}: [\"{}\", \"{}\"]\n", i, before, before)
                    : fmt::format("a{}: {}{}\n", i, before, before);
    }
    CHECK_THAT(test::usage_error([&] { YamlMap::from_text_with_references(text, "f.yaml"); }),
               Contains("f.yaml:") && Contains("found references that stand for"));
  }
}

TEST_CASE("YAML that is no UTF-8 is refused") {
  CHECK_THAT(refusal("a: 1\nb: \xff\nc: \xff"), Contains("f.yaml:2: found bytes that are no UTF-8"));
  // yaml-cpp makes one byte of these escapes, and takes a byte of 0 outside of quotes for a backslash.
  for (const std::string& wrong : {std::string("\"x\\_y\""), std::string("\"x\\Ny\""), std::string("x\0_y", 4)}) {
    CHECK_THAT(refusal("a: 1\nb: " + wrong), Contains("f.yaml:2: found the escape"));
    CHECK_THAT(refusal("a: 1\n" + wrong + ": 2"), Contains("f.yaml:2: found the escape"));
    CHECK_THAT(refusal("a: [1, " + wrong + "]"), Contains("f.yaml:1: found the escape"));
  }
  CHECK_NOTHROW(YamlMap::from_text("a: \"x\\u00a0y\"", "f.yaml"));
}
