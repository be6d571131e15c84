// The memory replay of a run's step program against what the trainer's allocator counted, with the run's own routing.
#pragma once
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/spec/support/json_reader.hpp"
#include "configs/spec/support/statistics.hpp"
#include "sim/program/build/build.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/support/routing_rows.hpp"
#include "tests/support/trainer_fixture.hpp"

namespace wt::test {

/// The first steps of a process allocate what later ones find: kWarmUpSteps of the recorder.
inline constexpr std::int64_t kMemoryWarmUp = 3;

/// Replayed peaks of the steps after the warm-up, each with the routing that the step had.
inline std::vector<double> replayed_peaks(const RunSpec& run, std::int64_t rank) {
  const RoutingRows routing(trained(run) / "routing.csv", run);
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  const Program& program = set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(rank)])];
  std::vector<double> out;
  for (std::int64_t step = kMemoryWarmUp + 1; step <= run.steps; ++step)
    out.push_back(replay_memory(program, [&](int microbatch, int layer) {
                    return routing.received(step, microbatch, layer, rank);
                  }).peak_bytes);
  return out;
}

/// Replayed over measured peak, minus 1: third quartile over the steps of rank 0. Gloo's threads give their copy of a
/// buffer back some time after the collective is done, on a busy machine in more than half of the steps: that lifts
/// what is measured, so the steps with the lowest measured peaks are those to compare.
inline double step_memory_error(const RunSpec& run) {
  const auto replayed = replayed_peaks(run, 0);
  const auto measured = step_peaks_of(trained(run));
  std::vector<double> errors;
  for (std::size_t i = 0; i < replayed.size(); ++i) errors.push_back(replayed[i] / measured.at(i + kMemoryWarmUp) - 1);
  return quantile(std::move(errors), 0.75);
}

/// Bytes of the largest buffer that a collective of the run moves: the rows of experts elsewhere as they were recorded.
inline double largest_transfer(const RunSpec& run) {
  const RoutingRows routing(trained(run) / "routing.csv", run);
  const Program program = build_program_set(run.model, run.layout, program_options(run)).programs.front();
  double most = 0;
  for (const OpInstance& each : unroll(program)) {
    if (!each.op->asynchronous()) continue;
    const Amount& bytes = each.op->collective.bytes;
    most = std::max(most, bytes.fixed);
    if (bytes.per_row == 0) continue;
    for (std::int64_t step = 1; step <= run.steps; ++step)
      for (std::int64_t rank = 0; rank < run.layout.world(); ++rank)
        most = std::max(most, bytes.at(routing.received(step, each.microbatch, each.layer, rank)));
  }
  return most;
}

/// The same of the highest peak of the run, of the rank where it is furthest from 0. One late copy more than the replay
/// holds is no error.
inline double highest_memory_error(const RunSpec& run) {
  const double late = run.layout.world() > 1 ? largest_transfer(run) : 0;
  const nlohmann::json ranks = read_json(trained(run) / "summary.json").at("ranks");
  double worst = 0;
  for (std::int64_t rank = 0; rank < run.layout.world(); ++rank) {
    const auto replayed = replayed_peaks(run, rank);
    const double measured = ranks.at(static_cast<std::size_t>(rank)).at("peak_tensor_bytes");
    const double highest = *std::max_element(replayed.begin(), replayed.end());
    const double error =
        (highest < measured ? std::min(0.0, highest + late - measured) : highest - measured) / measured;
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  return worst;
}

}  // namespace wt::test
