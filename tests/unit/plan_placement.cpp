// Plans that place experts, with copies and anew while loads drift.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/files/study_keys.hpp"
#include "planner/plan/plan_drift.hpp"
#include "planner/search/scaled_cost.hpp"
#include "reports/render/text_report.hpp"
#include "tests/fixtures/small_plan.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("placed experts reach the run file where the expert degree is fixed") {
  const PlanInputs inputs = inputs_of(set_study_key(kSmallStudy, "search.expert_degrees", "8", "s"));
  const Plan plan = make_plan(inputs);
  REQUIRE_FALSE(plan.layout.placement.empty());
  const TempDirectory folder;
  write_bytes(folder / "plan.yaml", plan_yaml(inputs, plan));
  CHECK(read_run(folder / "plan.yaml").layout.placement == plan.layout.placement);
  CHECK(plan.memory.process.high <= plan.memory_limit_bytes);
  CHECK(plan.memory.live.peak() < plan.memory.allocated.bytes);
  CHECK(plan.memory.allocated.bytes < plan.memory.reserved.bytes);
  CHECK(plan.memory.reserved.bytes < plan.memory.process.bytes);
}

TEST_CASE("nobody places experts by loads that were not recorded, and imbalance is still scaled", "[.nightly]") {
  const std::string text =
      set_study_key(set_study_key(kSmallStudy, "routing", "trained", "s"), "search.expert_degrees", "[8]", "s");
  const Plan plan = make_plan(inputs_of(text)),
             even = make_plan(inputs_of(set_study_key(text, "scale.imbalance", "0", "s")));
  CHECK(plan.placements.empty());
  CHECK(plan.layout.placement.empty());
  CHECK(plan.placement_note.find("Without recorded loads") != std::string::npos);
  CHECK(plan.imbalance > even.imbalance);
  CHECK(plan.imbalance_p99 > plan.imbalance);
}

TEST_CASE("copies and drifting loads: what a study asks for is in the plan, what nobody knows is refused",
          "[.nightly]") {
  const std::string placed = set_study_keys(kSmallStudy,
                                            {{"routing", "[olmoe]"},
                                             {"stack", "windtunnel-train"},
                                             {"search.shard_sizes", "[16]"},
                                             {"search.expert_degrees", "[16]"},
                                             {"search.expert_copies", "[1]"},
                                             {"search.microbatch", "[1]"},
                                             {"search.context_parallel_degree", "1"},
                                             {"search.recompute", "none"},
                                             {"drift", "{loads: [olmoe-c4, olmoe-github, olmoe-github], every: 500}"}},
                                            "s");
  const PlanInputs inputs = inputs_of(placed);
  const Plan plan = make_plan(inputs);
  CHECK(plan.layout.slots(inputs.study.model) == 64 + 16);
  CHECK_THAT(plan.placement_note, Catch::Contains("Each rank has one slot for copies of busy experts"));
  REQUIRE(plan.replacement);
  CHECK(plan.replacement->windows == 2);
  CHECK(plan.replacement->options.size() == 3);  // never, each window, each second
  CHECK_THAT(plan.drift_note, Catch::Contains("2 windows of 500 steps"));
  const nlohmann::json document = plan_json(inputs, plan);
  CHECK(document["drift"]["options"].size() == 3);
  CHECK_THAT(text_report(report_of(inputs, plan)), Catch::Contains("Experts placed anew while loads drift"));

  // All experts of all layers from one rank to the next: masters and two moments at NVLink's or the adapter's rate.
  const ScaledCost cost(*inputs.times, inputs.study.scale);
  const SearchProblem problem = search_problem(inputs, cost);
  Layout layout;
  layout.shard = layout.expert = 2, layout.replicate = 8;
  Placement turned(16);
  for (auto& slots : turned)
    for (std::int64_t e = 0; e < 64; ++e) slots.push_back((e + 32) % 64);
  const double bytes = 16 * 32 * 12 * static_cast<double>(problem.model.expert_parameters());
  CHECK(move_seconds(problem, layout, {}, turned) == Approx(bytes / problem.cluster.nvswitch_Bps));
  layout.shard = layout.expert = 16, layout.replicate = 1;
  CHECK(move_seconds(problem, layout, {}, turned) == Approx(bytes / 8 / problem.cluster.nic_per_gpu_Bps()));

  CHECK_THROWS_WITH(make_plan(inputs_of(set_study_key(placed, "routing", "[trained]", "s"))),
                    Catch::Contains("search.expert_copies: found 1, and no recorded loads"));
  CHECK_THROWS_WITH(make_plan(inputs_of(set_study_key(placed, "stack", "torchtitan", "s"))),
                    Catch::Contains("expert_copies 1, which its trainer does not run"));
}
