// The memory replay of the step program against what the trainer's allocator counted, with the run's own routing.
#include <catch2/catch.hpp>

#include "configs/spec/json_reader.hpp"
#include "sim/memory/memory.hpp"
#include "sim/program/build.hpp"
#include "tests/support/routing_rows.hpp"
#include "tests/support/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Replayed over measured peak, minus 1, of the rank where it is furthest from 0: highest of the measured steps, each
/// replayed with its own routing.
double peak_error(const RunSpec& run) {
  const auto folder = trained(run);
  const RoutingRows routing(folder / "routing.csv", run);
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  const nlohmann::json summary = read_json(folder / "summary.json");
  double worst = 0;
  for (std::int64_t rank = 0; rank < run.layout.world(); ++rank) {
    const Program& program = set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(rank)])];
    double replayed = 0;
    for (std::int64_t step = run.steps - summary.at("measured_steps").get<std::int64_t>() + 1; step <= run.steps; ++step) {
      const auto rows = [&](int microbatch, int layer) { return routing.received(step, microbatch, layer, rank); };
      replayed = std::max(replayed, replay_memory(program, rows).peak_bytes);
    }
    const double error = replayed / summary.at("ranks").at(static_cast<std::size_t>(rank)).at("peak_tensor_bytes").get<double>() - 1;
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  UNSCOPED_INFO(run.layout.name() << ", recompute " << to_string(run.layout.recompute) << ": " << 100 * worst << " %");
  return worst;
}

/// Gloo gives its scratch back when a collective is done, the replay where it is waited for: how much of it is there at
/// once is a matter of timing. Measured here: -0.9 to 1.9 %; where expert weights are sharded, and the scratch with
/// them is a large part of the peak, -0.5 to 7.6 %.
void check_peak(const RunSpec& run) {
  const double error = peak_error(run);
  CHECK(error >= -0.02);
  CHECK(error <= (run.layout.expert_shard() == 1 ? 0.02 : 0.10));
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

TEST_CASE("so it is with recompute, which needs less") {
  for (const RunSpec& run : runs(Recompute::block)) {
    check_peak(run);
    RunSpec without = run;
    without.layout.recompute = Recompute::none;
    CHECK(timelines_of(trained(run))[0].peak_bytes < timelines_of(trained(without))[0].peak_bytes);
  }
}

TEST_CASE("so it is in bf16") {
  for (RunSpec run : {small_run(), with_layout(small_run(), 2, 2, 2), with_layout(small_run(), 1, 4, 4)}) {
    run.precision = Precision::bf16;
    check_peak(run);
  }
}
