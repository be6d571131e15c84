// The memory replay of the step program against what the trainer's allocator counted, with the run's own routing.
#include <catch2/catch.hpp>

#include "configs/base/statistics.hpp"
#include "configs/files/memory_facts.hpp"
#include "tests/fixtures/families.hpp"
#include "tests/fixtures/replayed_memory.hpp"
#include "tests/fixtures/trainer_bounds.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Of the step of rank 0, and of the highest peak of any rank. These runs peak at 10 to 20 MB.
void check_peak(const RunSpec& run) {
  const double step = step_memory_error(run), highest = highest_memory_error(run);
  INFO(run.layout.name() << ", " << to_string(run.precision) << ", recompute " << to_string(run.layout.recompute)
                         << ": step " << 100 * step << " %, highest " << 100 * highest << " %");
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
  for (const RunSpec& run : some_of(uneven_runs(short_run()))) check_peak(run);
}

TEST_CASE("so it is with recompute, which needs less") {
  for (const RunSpec& run : some_of(block_runs(short_run()))) {
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

TEST_CASE("so it is with the loss in pieces, which needs less") {
  RunSpec whole = short_run();
  whole.steps = 6, whole.model.vocab = 2048;
  whole.layout.microbatch = 6;  // 288 tokens: 2.3 MB of logits
  const auto in_pieces = [](RunSpec run, std::int64_t chunks) {
    run.loss_chunks = chunks;
    return run;
  };
  const RunSpec pieces = in_pieces(whole, 4);
  RunSpec modules = with_layout(in_pieces(whole, 5), 1, 2, 2),
          half = with_layout(in_pieces(whole, kLigerChunks), 2, 2, 2);
  modules.model.mtp_layers = 1, half.precision = Precision::bf16;
  for (const RunSpec& run : {whole, pieces, modules, half}) check_peak(run);
  const auto typical = [](const RunSpec& run) {
    return std::pair{median(step_peaks_of(trained(run))), median(replayed_peaks(run, 0))};
  };
  const auto [measured_whole, replayed_whole] = typical(whole);
  const auto [measured, replayed] = typical(pieces);
  CHECK(replayed_whole - replayed == 288.0 * 2048 * 4 * 3 / 4);
  CHECK(measured_whole - measured == Approx(replayed_whole - replayed).epsilon(0.01));
}

TEST_CASE("where rows are dropped, as many of a rank's own rows as capacities allow are replayed") {
  RunSpec run = with_layout(short_run(), 1, 2, 2);
  run.steps = 5, run.model.router.capacity_factor = 1;
  const double step = step_memory_error(run), highest = highest_memory_error(run);
  INFO("step " << 100 * step << " %, highest " << 100 * highest << " %");
  CHECK((step >= -kMemoryStep && step <= 0.05));
  CHECK((highest >= -kMemoryHighest && highest <= 0.05));
}

TEST_CASE("so it is in bf16") {
  for (RunSpec run : {short_run(), with_layout(short_run(), 2, 2, 2), with_layout(short_run(), 1, 4, 4)}) {
    run.precision = Precision::bf16;
    check_peak(run);
  }
}
