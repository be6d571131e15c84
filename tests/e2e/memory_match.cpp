// The memory replay of the step program against what the trainer's allocator counted, with the run's own routing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "configs/spec/json_reader.hpp"
#include "sim/memory/memory.hpp"
#include "sim/program/build.hpp"
#include "tests/support/routing_rows.hpp"
#include "tests/support/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// The first steps of a process allocate what later ones find: kWarmUpSteps of the recorder.
constexpr std::int64_t kWarmUp = 3;

/// Replayed peaks of the steps after the warm-up, each with the routing that the step had.
std::vector<double> replayed_peaks(const RunSpec& run, std::int64_t rank) {
  const RoutingRows routing(trained(run) / "routing.csv", run);
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  const Program& program = set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(rank)])];
  std::vector<double> out;
  for (std::int64_t step = kWarmUp + 1; step <= run.steps; ++step)
    out.push_back(replay_memory(program, [&](int microbatch, int layer) { return routing.received(step, microbatch, layer, rank); }).peak_bytes);
  return out;
}

/// Replayed over measured peak, minus 1: median over the steps of rank 0.
double median_error(const RunSpec& run) {
  const auto replayed = replayed_peaks(run, 0);
  const auto measured = step_peaks_of(trained(run));
  std::vector<double> errors;
  for (std::size_t i = 0; i < replayed.size(); ++i) errors.push_back(replayed[i] / measured.at(i + kWarmUp) - 1);
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
  return errors[errors.size() / 2];
}

/// The same of the highest peak of the run, of the rank where it is furthest from 0.
double highest_error(const RunSpec& run) {
  const nlohmann::json ranks = read_json(trained(run) / "summary.json").at("ranks");
  double worst = 0;
  for (std::int64_t rank = 0; rank < run.layout.world(); ++rank) {
    const auto replayed = replayed_peaks(run, rank);
    const double measured = ranks.at(static_cast<std::size_t>(rank)).at("peak_tensor_bytes");
    const double error = *std::max_element(replayed.begin(), replayed.end()) / measured - 1;
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  return worst;
}

/// Gloo gives its scratch back when a collective is done, the replay where it is waited for: how much of it is there at
/// once is a matter of timing, and more so where expert weights are sharded. Measured here: medians of -0.04 to 1.6 %, to
/// 3.6 % where they are sharded; the highest of many steps varies by 3 % from
/// run to run.
void check_peak(const RunSpec& run, double allowed = 0.02) {
  const double median = median_error(run), highest = highest_error(run);
  INFO(run.layout.name() << ", " << to_string(run.precision) << ", recompute " << to_string(run.layout.recompute) << ": median " << 100 * median << " %, highest "
                         << 100 * highest << " %");
  CHECK(median >= -allowed);
  CHECK(median <= (run.layout.expert_shard() == 1 ? std::max(allowed, 0.03) : 0.06));  // seen to 1.9 %: scratch given back early
  CHECK(std::abs(highest) <= 0.10);
}

std::vector<RunSpec> runs(Recompute recompute) {
  std::vector<RunSpec> out = sharded_runs(small_run(), recompute);
  out.push_back(with_layout(small_run(), 1, 1, 1, recompute));
  return out;
}

}  // namespace

TEST_CASE("the replayed peak is the measured one on every layout") {
  for (const RunSpec& run : runs(Recompute::none)) check_peak(run);
}

TEST_CASE("so it is whatever is kept where, and for how long") {
  for (const RunSpec& run : further_layouts(small_run())) check_peak(run);
}

TEST_CASE("so it is with recompute, which needs less") {
  for (const RunSpec& run : runs(Recompute::block)) {
    check_peak(run);
    RunSpec without = run;
    without.layout.recompute = Recompute::none;
    CHECK(timelines_of(trained(run))[0].peak_bytes < timelines_of(trained(without))[0].peak_bytes);
  }
}

TEST_CASE("so it is in bf16, to 5 %") {
  for (RunSpec run : {small_run(), with_layout(small_run(), 2, 2, 2), with_layout(small_run(), 1, 4, 4)}) {
    run.precision = Precision::bf16;
    check_peak(run, 0.05);
  }
}
