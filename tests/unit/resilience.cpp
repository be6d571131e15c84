// The keys of a run file that protect a run: read, written and refused.
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>

#include "configs/base/yaml.hpp"
#include "configs/files/resilience.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

ResilienceSpec read(const std::string& text) {
  YamlMap map = YamlMap::from_text(text, "run.yaml");
  const ResilienceSpec spec = read_resilience(map);
  map.finish();
  return spec;
}

std::string refused(const std::string& text) {
  return usage_error([&] { read(text); });
}

}  // namespace

TEST_CASE("what is written reads back to the same, usual values are left out") {
  ResilienceSpec spec;
  spec.local = {3, "/dev/shm", false, 4};
  spec.verify_saves = false, spec.verify_interval = 10, spec.grace_period_s = 1.5;
  spec.skipped = {{7, 7}, {120, 180}};
  for (const ResilienceSpec& each : {spec, ResilienceSpec{}}) {
    YAML::Emitter out;
    out << YAML::BeginMap;
    resilience_to_yaml(each, out);
    out << YAML::EndMap;
    CHECK(read(out.c_str()) == each);
  }
  CHECK(read("{}") == ResilienceSpec{});
}

TEST_CASE("batches are skipped one by one and in ranges, the ends included") {
  const ResilienceSpec spec = read("skip_batches: [3, 5-6]");
  std::vector<std::int64_t> skipped;
  for (std::int64_t batch = 1; batch < 9; ++batch)
    if (spec.skips(batch)) skipped.push_back(batch);
  CHECK(skipped == std::vector<std::int64_t>{3, 5, 6});
}

TEST_CASE("what makes no sense is refused with what is allowed") {
  CHECK_THAT(refused("local_checkpoints: {peer: true}"), Catch::Contains("interval"));
  CHECK_THAT(refused("local_checkpoints: {interval: 0ba}"), Catch::Contains("needs at least 1ba"));
  CHECK_THAT(refused("local_checkpoints: {interval: 5}"), Catch::Contains("such as 40ba"));
  CHECK_THAT(refused("local_checkpoints: {interval: 5ba, keep: 1}"), Catch::Contains("keep"));
  CHECK_THAT(refused("local_checkpoints: {interval: 5ba, where: x}"), Catch::Contains("where"));
  CHECK_THAT(refused("verify_interval: 0ba"), Catch::Contains("needs at least 1ba"));
  CHECK_THAT(refused("verify_saves: perhaps"), Catch::Contains("verify_saves"));
  CHECK_THAT(refused("grace_period: 0"), Catch::Contains("grace_period"));
  for (const char* batch : {"0", "x", "5-", "6-5", "-3", "1-2-3"})
    CHECK_THAT(refused(fmt::format("skip_batches: ['{}']", batch)), Catch::Contains("such as 120"));
  CHECK_THAT(refused("skip_batches: [5-9, 9]"), Catch::Contains("found 9 after 9, needs ascending batches"));
}
