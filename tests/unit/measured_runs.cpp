// The measured runs that a step is most like.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "sim/cost/stacks/measured_runs.hpp"

using namespace wt;

namespace {

RunFeatures features(double gpus, double sequence = 8192, const std::string& gpu = "H100-SXM") {
  return {.family = "dense, data parallel",
          .gpu = gpu,
          .stack = "torchtitan",
          .format = "bf16",
          .gpus = gpus,
          .flops_per_token = 5e10,
          .sequence = sequence,
          .microbatch = sequence};
}

MeasuredRun run(const std::string& origin, const RunFeatures& of, const std::string& name = "llama") {
  return {name, origin, of, 6000, 6600};
}

}  // namespace

TEST_CASE("steps are as far apart as the doublings between their amounts, and one for each other word") {
  CHECK(doublings_apart(features(128), features(128)) == 0);
  CHECK(doublings_apart(features(128), features(32)) == Approx(2));
  CHECK(doublings_apart(features(32), features(128)) == Approx(2));
  CHECK(doublings_apart(features(128), features(128, 16384)) == Approx(2));  // sequence and microbatch
  CHECK(doublings_apart(features(128), features(128, 8192, "H200-SXM")) == Approx(1));
  RunFeatures other = features(128);
  other.family = std::string("MoE, data parallel");
  CHECK(doublings_apart(features(128), other) > 1e300);
}

TEST_CASE("the nearest run comes first, and of an origin's runs of a model only that") {
  const std::vector<MeasuredRun> runs = {run("a", features(512)), run("b", features(64)), run("b", features(32)),
                                         run("b", features(16), "mixtral")};
  const std::vector<Relative> near = relatives(features(128, 8192, "H200-SXM"), runs, 3);
  REQUIRE(near.size() == 3);
  CHECK((near[0].run.origin == "b" && near[0].run.features.gpus == 64));
  CHECK(near[0].differences == std::vector<std::string>{"2 x the GPUs", "GPU H200-SXM"});
  CHECK((near[1].run.origin == "a" && near[2].run.name == "mixtral"));
  CHECK(near[1].differences.front() == "1/4 of the GPUs");
  CHECK(runs[0].ratio() == Approx(1.1));
  CHECK(relatives(features(128), {}, 3).empty());
}

TEST_CASE("what lies beyond twice the largest measured amount is named") {
  const std::vector<MeasuredRun> runs = {run("a", features(512)), run("b", features(64))};
  CHECK(beyond_measured(features(1024), runs).empty());
  CHECK(beyond_measured(features(1025), runs) ==
        std::vector<std::string>{"1025 GPUs, where runs like it had 512 at most"});
  CHECK(beyond_measured(features(31), runs).front() == "31 GPUs, where runs like it had 64 at least");
  CHECK(beyond_measured(features(64, 65536), runs).size() == 2);
  CHECK(beyond_measured(features(64), {}).empty());
}
