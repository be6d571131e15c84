// The memory replay of the step program against what the trainer's allocator counted, with the run's own routing.
#include <catch2/catch.hpp>

#include "tests/fixtures/families.hpp"
#include "tests/fixtures/replayed_memory.hpp"
#include "tests/fixtures/trainer_bounds.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Of the typical step of rank 0, and of the highest peak of any rank. These runs peak at 10 to 20 MB.
void check_peak(const RunSpec& run) {
  const double step = step_memory_error(run), highest = highest_memory_error(run);
  INFO(run.layout.name() << ", " << to_string(run.precision) << ", recompute " << to_string(run.layout.recompute)
                         << ": typical step " << 100 * step << " %, highest " << 100 * highest << " %");
  CHECK(std::abs(step) <= kMemoryStep);
  CHECK(std::abs(highest) <= kMemoryHighest);
}

}  // namespace

TEST_CASE("the replayed peak is the measured one on every layout") {
  check_peak(short_run());
  for (const RunSpec& run : sharded_runs(short_run())) check_peak(run);
}

TEST_CASE("so it is whatever is kept where, and for how long") {
  for (const RunSpec& run : further_layouts(short_run())) check_peak(run);
  for (const RunSpec& run : replicated_experts(short_run())) check_peak(run);
  for (const RunSpec& run : context_runs(short_run())) check_peak(run);
}

TEST_CASE("so it is where the last microbatch is smaller") {
  for (const RunSpec& run : uneven_runs(short_run())) check_peak(run);
}

TEST_CASE("so it is with recompute, which needs less") {
  for (const RunSpec& run : block_runs(short_run())) {
    check_peak(run);
    RunSpec without = run;
    without.layout.recompute = Recompute::none;
    // The median step: a thread of Gloo that gives its copy of a buffer back late lifts a step now and then.
    CHECK(median(step_peaks_of(trained(run))) < median(step_peaks_of(trained(without))));
  }
}

TEST_CASE("so it is with windows, sinks, biases and GPT-OSS's gate") {
  RunSpec run = short_run();
  as_gpt_oss(run.model);
  RunSpec block = with_layout(run, 2, 2, 2, Recompute::block), half = with_layout(run, 1, 4, 4);
  half.precision = Precision::bf16;
  for (const RunSpec& each : {run, with_layout(run, 1, 4, 2), block, half}) check_peak(each);
}

TEST_CASE("so it is with modules of multi-token prediction") {
  RunSpec run = short_run();
  run.model.mtp_layers = 2;
  RunSpec packed = with_layout(run, 2, 2, 2), half = with_layout(run, 1, 4, 4);
  packed.layout.recompute = recompute_from_string("block/int8"), half.precision = Precision::bf16;
  for (const RunSpec& each :
       {run, with_layout(run, 2, 2, 2, Recompute::block), packed, half, further_layouts(run)[1], context_runs(run)[0]})
    check_peak(each);
}

TEST_CASE("so it is in bf16") {
  for (RunSpec run : {short_run(), with_layout(short_run(), 2, 2, 2), with_layout(short_run(), 1, 4, 4)}) {
    run.precision = Precision::bf16;
    check_peak(run);
  }
}
