// One rank alone against the same rank among its real peers: the same ops and collectives, the same rows, the same
// memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "planner/cli/rehearse/rehearsal_report.hpp"
#include "planner/experiments/reduced_run.hpp"
#include "sim/program/timeline_json.hpp"
#include "tests/fixtures/fake_cost.hpp"
#include "tests/fixtures/replayed_memory.hpp"
#include "tests/fixtures/routing_csv.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fixtures/windtunnel.hpp"
#include "trainer/process/trainer_process.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

RunSpec planned(std::int64_t rank, Recompute recompute = Recompute::none) {
  RunSpec run = with_layout(small_run(), 1, 4, 4, recompute);
  run.rehearsal.rank = rank;
  run.rehearsal.steps = 6;
  return run;
}

/// The same run without its rehearsal section: what the real ranks train.
RunSpec real(RunSpec run) {
  run.rehearsal = {};
  return run;
}

/// Rehearses at full width on the routing that the real run recorded.
fs::path rehearsed(RunSpec run) {
  static int count = 0;
  const fs::path folder = scratch(fmt::format("rehearsal-{}", ++count));
  fs::create_directories(folder);
  run.rehearsal.routing = (trained(real(run)) / "routing.csv").string();
  write_file_atomically(folder / "run.yaml", run_to_yaml(run));
  const Ended ended =
      wait_for(start_trainer({"train", "--rehearse", (folder / "run.yaml").string(), "-o", folder.string()}));
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  return folder;
}

std::vector<StepTimeline> steps_in(const fs::path& folder) {
  std::vector<StepTimeline> out;
  const auto document = read_json(folder / "rehearsal.json");
  for (const auto& step : document.at("steps"))
    out.push_back(timeline_from_json(step.at("timeline"), "rehearsal.json"));
  return out;
}

std::vector<std::pair<std::string, Lane>> issued(const StepTimeline& t) {
  std::vector<std::pair<std::string, Lane>> out;
  for (const OpRecord& op : t.ops) out.emplace_back(op.id, op.lane);
  return out;
}

}  // namespace

TEST_CASE("a rehearsed rank issues the ops and collectives of the real one, in its order") {
  for (const auto& [rank, microbatch] : {std::pair{0, 2}, {3, 2}, {3, 4}}) {  // 2 2 2, and 4 2
    RunSpec run = planned(rank);
    run.layout.microbatch = microbatch;
    const StepTimeline expected = timelines_of(trained(real(run)))[static_cast<std::size_t>(rank)];
    const auto steps = steps_in(rehearsed(run));
    CHECK(static_cast<std::int64_t>(steps.size()) == run.rehearsal.steps);
    for (const StepTimeline& t : steps) {
      CHECK(t.rank == rank);
      CHECK(issued(t) == issued(expected));
    }
  }
}

TEST_CASE("experts get exactly the rows that the recording says, and the own tokens choose as recorded") {
  const RunSpec run = planned(0);
  const RoutingRows recorded(trained(real(run)) / "routing.csv", run);
  const fs::path folder = rehearsed(run);
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  const auto ops = unroll(set.programs[0]);
  std::int64_t seen = 0;
  for (const StepTimeline& t : steps_in(folder))
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].op->action == Action::experts) {
        ++seen;
        CHECK(t.ops[i].rows == recorded.received(t.step, ops[i].microbatch, ops[i].layer, 0));
      }
  CHECK(seen == run.rehearsal.steps * run.microbatches() * run.model.layers * 2);
  const auto document = read_json(folder / "rehearsal.json");
  for (const auto& step : document.at("steps")) {
    CHECK(std::isfinite(step.at("loss").get<double>()));
    for (std::int64_t layer = 0; layer < run.model.layers; ++layer)
      CHECK(step.at("routing").at(0).at(static_cast<std::size_t>(layer)).get<std::vector<double>>() ==
            recorded.at({step.at("timeline").at("step"), 0, layer, 0}));
  }
}

TEST_CASE("the peak of a rehearsed rank is that of the real one and of the memory replay") {
  for (const Recompute& recompute : {Recompute::none, Recompute::block}) {
    const RunSpec run = planned(0, recompute);
    const auto real_peaks = step_peaks_of(trained(real(run)));
    const auto source =
        recorded_routing(trained(real(run)) / "routing.csv", run.model, run.layout.microbatch * run.seq);
    const RankRouting rows(run, *source);
    const double late = largest_transfer(real(run));
    for (const StepTimeline& t : steps_in(rehearsed(run))) {
      const double replayed = replay_memory(rank_program(run), rows.rows(t.step)).peak_bytes,
                   among_peers = real_peaks[static_cast<std::size_t>(t.step - 1)];
      INFO("step " << t.step << ": rehearsed " << t.peak_bytes << ", real " << among_peers << ", replayed "
                   << replayed);
      CHECK(t.peak_bytes == Approx(replayed).epsilon(0.02));
      // Among real peers the transport gives its copy of a buffer back some time after the collective is done.
      CHECK(among_peers > 0.98 * t.peak_bytes);
      CHECK(among_peers < 1.02 * t.peak_bytes + late);
    }
  }
}

TEST_CASE("measured, predicted and replayed stand side by side") {
  const RunSpec run = planned(0);
  const auto source = recorded_routing(trained(real(run)) / "routing.csv", run.model, run.layout.microbatch * run.seq);
  const FakeCost cost;
  const Rehearsal r = read_rehearsal_result(run, run, rehearsed(run), *source, *source, &cost);
  CHECK_FALSE(r.reduced());
  CHECK(r.peak_holds());
  CHECK(r.measured_s() > 0);
  CHECK(r.extrapolated_s() == Approx(r.measured_s()));
  double predicted = 0;
  const Program program = rank_program(run);
  for (const OpInstance& op : unroll(program))
    if (!op.op->asynchronous() && !op.op->work.empty())
      predicted +=
          cost.segment(*op.op, op.layer >= 0 ? RankRouting(run, *source).received(8, op.microbatch, op.layer) : 0)
              .seconds;
  CHECK(*r.predicted_s() == Approx(predicted));  // the last of 2 + 6 steps
  const auto document = to_json(r);
  CHECK(document.at("ops").size() == r.ops.size());
  CHECK(document.at("collectives").at("all_to_all").at("count") == 5 * run.model.layers * run.microbatches());
  check(rehearsal_report(r));
}

TEST_CASE("refusals of windtunnel train --rehearse") {
  const fs::path folder = scratch("refused");
  fs::create_directories(folder);
  const auto asked = [&](RunSpec run, const std::string& more = "") {
    write_file_atomically(folder / "run.yaml", run_to_yaml(run));
    return windtunnel("train --rehearse " + (folder / "run.yaml").string() + more);
  };
  write_bytes(folder / "plan.json", "{}");
  const Ended document = windtunnel("train --rehearse " + (folder / "plan.json").string());
  CHECK(document.status == 2);
  CHECK_THAT(document.said, Contains("found a JSON document") && Contains("plan.yaml"));
  fs::remove(folder / "plan.json");

  const Ended study = windtunnel("train --rehearse configs/studies/dbrx-3072-h100.yaml");
  CHECK(study.status == 2);
  CHECK_THAT(study.said, Contains("dbrx-3072-h100.yaml") && Contains("missing"));

  RunSpec odd = planned(0);
  odd.rehearsal.width_divisor = 4;  // 88 / 4 = 22
  const Ended width = asked(odd);
  CHECK(width.status == 2);
  CHECK_THAT(width.said, Contains("d_model") && Contains("88") && Contains("multiple of 4"));

  CHECK(asked(planned(0), " --machine nowhere.json").status == 2);
  const std::string gpus = (folder / "h100.json").string();
  REQUIRE(windtunnel("calibrate tests/data/h100-profile.json -o " + gpus).status == 0);
  const Ended foreign = asked(planned(0), " --machine " + gpus);
  CHECK(foreign.status == 2);
  CHECK_THAT(foreign.said, Contains("found times of GPUs, the rehearsal runs on this machine's CPU"));
  CHECK_THAT(asked(planned(0), " --machines x").said, Contains("--machines"));
  CHECK_THAT(windtunnel("train configs/runs/demo.yaml -o x --json").said, Contains("--rehearse"));
  CHECK_THAT(windtunnel("train -o x").said, Contains("no run file"));
}
