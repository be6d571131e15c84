// Every family trains: the loss falls, layouts agree with one rank, and the memory held at each op is what the step
// program says.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/fixtures/families.hpp"

using namespace wt;
using namespace wt::test;

namespace {

double off(double expected, double found) { return expected == found ? 0 : std::abs(found / expected - 1); }

std::vector<RunSpec> layouts_of(const RunSpec& run) {
  const std::int64_t expert = run.model.experts > 0 ? 2 : 1;
  std::vector<RunSpec> out{with_layout(run, 1, 4, expert)};
  if (run.model.tied || run.model.router.bias_update_rate > 0) {  // what replicas, too, must keep alike
    out.push_back(with_layout(run, 2, 2, expert));
    out.push_back(with_layout(run, 4, 1, 1));
  }
  // Shared sequences: each rank has rows of the table and of the masks, scores and tokens ahead of its own.
  if (run.model.attention.rope_scaling.on() || run.model.attention.any_local() || run.model.mtp_layers > 0) {
    out.push_back(with_layout(run, 1, 2, 1));
    out.back().layout.context = 2;
  }
  if (run.model.ffn_bias && expert > 1) {  // copies of two experts, whose biases are summed as their weights are
    out.push_back(with_layout(run, 1, 2, 2));
    out.back().layout.placement.assign(static_cast<std::size_t>(run.model.layers), {0, 1, 2, 3, 4, 5, 6, 7, 0, 1});
  }
  return out;
}

struct Deviation {
  double bytes = 0, peak = 0;
  std::string id;
};

/// The op of one rank alone at which live memory is furthest from the replayed one, less what is held before the first
/// op.
Deviation worst_live(const RunSpec& run) {
  const StepTimeline measured = timelines_of(trained(run)).at(0);
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  const MemoryReplay replay = replay_memory(set.programs[0], [](int, int) { return 0.0; });
  REQUIRE(replay.live_bytes.size() == measured.ops.size());
  Deviation worst;
  worst.peak = replay.peak_bytes;
  for (std::size_t i = 0; i < measured.ops.size(); ++i)
    if (const double bytes = replay.live_bytes[i] - measured.ops[i].live_bytes; std::abs(bytes) > std::abs(worst.bytes))
      worst.bytes = bytes, worst.id = measured.ops[i].id;
  return worst;
}

}  // namespace

TEST_CASE("every family learns, from the loss of a uniform guess") {
  for (const RunSpec& run : family_runs()) {
    INFO(run.name);
    const auto steps = steps_of(trained(run));
    CHECK(steps.front().loss == Approx(std::log(257.0)).epsilon(0.03));
    CHECK(steps.back().loss < steps.front().loss - 0.1);
    REQUIRE(steps.front().mtp_losses.size() == static_cast<std::size_t>(run.model.mtp_layers));
    for (std::size_t module = 0; module < steps.front().mtp_losses.size(); ++module) {
      CHECK(steps.front().mtp_losses[module] == Approx(std::log(257.0)).epsilon(0.03));
      CHECK(steps.back().mtp_losses[module] < steps.front().mtp_losses[module] - 0.1);
    }
  }
}

TEST_CASE("every family trains in every layout as on one rank") {
  for (const RunSpec& run : family_runs()) {
    const auto expected = steps_of(trained(run));
    for (const RunSpec& other : some_of(layouts_of(run))) {
      INFO(run.name << ", " << other.layout.name());
      const auto found = steps_of(trained(other));
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(off(expected[i].loss, found[i].loss) <= (i == 0 ? 1e-6 : 1e-5));
        CHECK(off(expected[i].aux_loss, found[i].aux_loss) <= 1e-5);
        REQUIRE(found[i].mtp_losses.size() == expected[i].mtp_losses.size());
        for (std::size_t module = 0; module < found[i].mtp_losses.size(); ++module)
          CHECK(off(expected[i].mtp_losses[module], found[i].mtp_losses[module]) <= (i == 0 ? 1e-6 : 1e-5));
        CHECK(off(expected[i].grad_norm, found[i].grad_norm) <= (i == 0 ? 1e-5 : 2e-3));
      }
    }
  }
}

TEST_CASE("the memory of every family is the replayed one at every op") {
  std::vector<RunSpec> runs = some_of(family_runs());
  for (RunSpec& run : runs) run.layout.recompute = Recompute::block;
  for (const RunSpec& plain : family_runs()) runs.push_back(plain);
  for (const RunSpec& run : runs) {
    const Deviation worst = worst_live(run);
    INFO(run.name << ", recompute " << to_string(run.layout.recompute) << ": " << worst.bytes << " bytes at "
                  << worst.id << " of " << worst.peak);
    CHECK(std::abs(worst.bytes) <= 0.01 * worst.peak);
  }
}

TEST_CASE("recompute changes no bit of any family") {
  for (RunSpec run : some_of(family_runs())) {
    INFO(run.name);
    const auto expected = steps_of(trained(run));
    run.layout.recompute = recompute_from_string("block");
    CHECK(steps_of(trained(run)) == expected);
  }
}
