// device_train_microbatch_size: auto, by the replay of a step's memory.
#include <catch2/catch.hpp>

#include "configs/files/find.hpp"
#include "configs/files/run.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

RunSpec automatic() {
  RunSpec run = read_run(find_config("runs", "tiny-moe"));
  run.layout = {}, run.smaller_layouts.clear();
  run.global_batch = 12, run.microbatch_auto = true;
  return run;
}

double needed(std::int64_t microbatch) {
  RunSpec run = automatic();
  run.layout.microbatch = microbatch;
  return step_memory(run);
}

std::int64_t chosen(double bytes) {
  const RunSpec run = choose_microbatch(automatic(), bytes, "run.yaml");
  CHECK_FALSE(run.microbatch_auto);
  return run.layout.microbatch;
}

}  // namespace

TEST_CASE("the largest microbatch that divides a rank's sequences and fits is taken") {
  double before = 0;
  for (const std::int64_t microbatch : {1, 2, 3, 4, 6, 12}) {
    const double bytes = needed(microbatch);
    CHECK(bytes > before);
    CHECK(chosen(bytes) == microbatch);
    if (before > 0) CHECK(chosen(bytes - 1) < microbatch);
    before = bytes;
  }
  CHECK(chosen(1e15) == 12);
}

TEST_CASE("a pipeline's schedule decides which microbatches there are") {
  const auto staged = [](Schedule schedule, std::int64_t batch) {
    RunSpec run = automatic();
    run.model.layers = 8;
    run.layout.pipeline = 2, run.layout.virtual_stages = 2, run.layout.schedule = schedule;
    run.layout.reshard_after_forward = run.layout.reduce_every_microbatch = false;
    run.global_batch = batch;
    return run;
  };
  const auto largest = [&](Schedule schedule, std::int64_t batch) {
    return choose_microbatch(staged(schedule, batch), 1e15, "run.yaml").layout.microbatch;
  };
  CHECK(largest(Schedule::one_f_one_b, 12) == 6);  // 2 microbatches of 2 interleaved stages, never 1 or 3
  CHECK(largest(Schedule::one_f_one_b, 6) == 3);
  CHECK(largest(Schedule::dualpipe_v, 12) == 3);  // 4 at least
  CHECK_THAT(usage_error([&] { largest(Schedule::one_f_one_b, 9); }),
             Catch::Contains("no size cuts the 9 sequences of a rank") && Catch::Contains("2 interleaved stages"));
  CHECK_THAT(usage_error([&] { largest(Schedule::dualpipe_v, 3); }), Catch::Contains("needs at least 4, two a stage"));
  const RunSpec run = staged(Schedule::one_f_one_b, 12);
  CHECK_THAT(usage_error([&] { return choose_microbatch(run, 1, "run.yaml"); }),
             Catch::Contains("but 1 sequence needs"));
}

TEST_CASE("where not even one sequence fits it is said what is needed, and a number stays") {
  CHECK_THAT(usage_error([] { chosen(needed(1) - 1); }),
             Catch::Contains("run.yaml: device_train_microbatch_size: found auto, but 1 sequence needs"));
  RunSpec run = automatic();
  run.microbatch_auto = false, run.layout.microbatch = 5;
  CHECK(choose_microbatch(run, 0, "run.yaml").layout.microbatch == 5);
}
