// The trainer does what the step program says, op by op, and what it records is whole.
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/program/compose/compose.hpp"
#include "tests/fixtures/issued_ops.hpp"
#include "tests/fixtures/routing_csv.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

std::vector<RunSpec> all_runs() {
  std::vector<RunSpec> out{short_run()};
  for (const auto& more : {sharded_runs(short_run()), block_runs(short_run()), uneven_runs(short_run())})
    out.insert(out.end(), more.begin(), more.end());
  out.push_back(with_layout(short_run(), 1, 2, 2));
  out.back().steps = 5, out.back().model.router.capacity_factor = 1;  // some rows are dropped
  return out;
}

}  // namespace

TEST_CASE("every rank executed the ops of its program, in order") {
  for (const RunSpec& run : all_runs()) check_issued_ops(run);
}

TEST_CASE("times of ops are in order, and waits add up to the exposed time") {
  for (const RunSpec& run : all_runs())
    for (const StepTimeline& t : timelines_of(trained(run))) {
      INFO(run.layout.name() << ", rank " << t.rank);
      double issued = 0, waited = 0;
      for (const OpRecord& op : t.ops) {
        INFO(op.id);
        CHECK((op.waited_s >= 0 && op.issued_s >= issued && op.done_s >= op.issued_s && op.done_s <= t.step_s));
        CHECK(op.peak_bytes >= op.live_bytes);
        issued = op.issued_s, waited += op.waited_s;
      }
      CHECK(t.exposed_s == Approx(waited));
      CHECK((t.exposed_s > 0) == (run.layout.world() > 1));
    }
}

TEST_CASE("no token is lost: every rank's tokens choose top_k experts each, in every microbatch and layer") {
  for (const RunSpec& run : all_runs()) {
    const RoutingRows routing(trained(run) / "routing.csv", run);
    REQUIRE(routing.size() ==
            static_cast<std::size_t>(run.steps * run.microbatches() * run.model.layers * run.layout.world()));
    for (const auto& [key, counts] : routing)
      CHECK(std::accumulate(counts.begin(), counts.end(), 0.0) ==
            static_cast<double>(run.tokens().of(key[1]) * run.model.top_k));
  }
}

TEST_CASE("rows that ops were bound to are those of the recorded routing") {
  for (const RunSpec& run : all_runs()) {
    if (run.layout.expert == 1 || !run.layout.placement.empty()) continue;
    const RoutingRows routing(trained(run) / "routing.csv", run);
    const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
    const auto ops = unroll(set.programs[0]);
    for (const StepTimeline& t : timelines_of(trained(run)))
      for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i].op->action == Action::experts)
          CHECK(t.ops[i].rows == routing.received(t.step, ops[i].microbatch, ops[i].layer, t.rank));
  }
}
