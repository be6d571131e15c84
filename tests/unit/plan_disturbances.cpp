// Plans beside slow nodes, maintenance, silent errors, local saves and lost replicas.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "reports/render/text_report.hpp"
#include "tests/fixtures/small_plan.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Recovery policies differ.
const std::string kManyFailures = "scale: {mtbf: 0.001}\n";

}  // namespace

TEST_CASE("a plan mentions slow nodes and maintenance where the study names them", "[.nightly]") {
  const PlanInputs plain = inputs_of(kSmallStudy);
  const PlanInputs inputs = inputs_of(kSmallStudy + "stragglers: bloom\nmaintenance: {every: 3h, duration: 10m}\n");
  const Plan before = make_plan(plain), plan = make_plan(inputs);
  REQUIRE(plan_disturbances(plain, before).size() == 2);  // and that only the simulated runs have them
  CHECK_THAT(plan_disturbances(plain, before)[0], Catch::Contains("Planned stops as in llama3"));
  CHECK(before.runs.scenario.planned_mean_s == Approx(54.0 * 86400 / 47 * 2048 / 2));
  CHECK(plan.step.step_s == before.step.step_s);
  CHECK(plan.runs.distribution.mean_s > before.runs.distribution.mean_s);
  const std::string report = text_report(report_of(inputs, plan));
  CHECK_THAT(report,
             Catch::Contains("Slow nodes as in bloom") && Catch::Contains("Maintenance of 10.0 min every 3.00 h"));
  const auto document = plan_json(inputs, plan);
  CHECK(document["finish"]["disturbances"]["stragglers"]["step_factor"]["value"] == 1.064);
  CHECK(document["finish"]["disturbances"]["maintenance"]["a_run"] == plan.runs.distribution.planned_stops);
}

TEST_CASE("a plan mentions local saves, silent errors and replica loss where the study names them", "[.nightly]") {
  const std::string local = "checkpoint: {local: {every: 1m, survival: 0.8, source: 'assumed: a test'}}\n",
                    silent = "silent_errors: {rate: llama3, verify: 3s, source: 'assumed: a test'}\n",
                    lost = "replica_loss: {recover: 10m, stall: 1m, source: 'assumed: a test'}\n";
  const auto plan_of = [](const std::string& more) {
    PlanInputs inputs = inputs_of(kSmallStudy + kManyFailures + more);
    inputs.study.search.shard_sizes = {8};  // with one stage: two replicas, one of which can be lost
    inputs.study.search.pipeline_degrees = {1};
    Plan plan = make_plan(inputs);
    return std::tuple{text_report(report_of(inputs, plan)), plan_json(inputs, plan)["finish"], std::move(plan)};
  };
  {
    const auto [report, finish, plan] = plan_of(local);
    CHECK(finish["recovery"] == kLocalCopies);
    CHECK(finish["failures_by"] == "wall clock");
    CHECK_THAT(report, Catch::Contains("Local saves to host memory every"));
    CHECK(finish["disturbances"]["local_checkpoints"]["survival"]["value"] == 0.8);
    REQUIRE(plan.schedule.input.local.interval_steps > 0);
    CHECK(plan.schedule.cadence.interval_steps % plan.schedule.input.local.interval_steps == 0);
  }
  {
    const auto [report, finish, plan] = plan_of(silent);
    CHECK_THAT(report, Catch::Contains("Silent errors as in llama3"));
    CHECK(finish["disturbances"]["silent_errors"]["verify_s"]["source"] == "a test");
    CHECK(plan.runs.distribution.bucket_mean_s[static_cast<std::size_t>(Bucket::custom_events)] > 0);
  }
  const auto [report, finish, plan] = plan_of(local + lost);
  REQUIRE(plan.layout.replicate > 1);
  // One recovery policy: the plan says which of the two it leaves out.
  const bool goes_on = finish["recovery"] == kWithoutReplica;
  CHECK((goes_on || finish["recovery"] == kLocalCopies));
  CHECK(finish["disturbances"].contains("replica_loss") == goes_on);
  CHECK_THAT(report, Catch::Contains(goes_on ? "A failure stops one of" : "Local saves to host memory every"));
  CHECK_THAT(report, Catch::Contains(fmt::format("{} is left out: {} is the better recovery policy",
                                                 goes_on ? "checkpoint.local" : "replica_loss",
                                                 goes_on ? kWithoutReplica : kLocalCopies)));
}

TEST_CASE("local saves no more frequent than saves are left out, and the plan says so", "[.nightly]") {
  const auto with_local = [](double every_s) {
    return inputs_of(
        kSmallStudy + kManyFailures +
        fmt::format("checkpoint: {{local: {{every: {}s, survival: 0.8, source: 'assumed: a test'}}}}\n", every_s));
  };
  const CadencePlan plain = make_plan(inputs_of(kSmallStudy + kManyFailures)).schedule.cadence;
  for (double every_s : {1.01 * plain.interval_s.value, 300 * 86400.0}) {
    const PlanInputs inputs = with_local(every_s);
    const Plan plan = make_plan(inputs);
    CHECK(plan.schedule.input.local.interval_steps == 0);
    CHECK(plan.schedule.cadence.interval_steps == plain.interval_steps);
    CHECK_THAT(plan_disturbances(inputs, plan).front(), Catch::Contains("does nothing here and is left out"));
    CHECK(plan_json(inputs, plan)["finish"]["disturbances"]["local_checkpoints"]["left_out"] == true);
  }
  const RunSchedule halved = make_plan(with_local(plain.interval_s.value / 2)).schedule;
  CHECK(halved.input.local.interval_steps > 0);
  CHECK(halved.cadence.interval_steps % halved.input.local.interval_steps == 0);
}

TEST_CASE("the step with a slow node is simulated where its file gives how fast the node computes", "[.nightly]") {
  const TempDirectory folder;
  const auto factor_at = [&](double compute) {
    std::string text = read_bytes("configs/faults/rates/bloom.yaml");
    const std::size_t at = text.find("  step_factor:\n    value: 1.064");
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string("  step_factor:\n    value: 1.064").size(),
                 fmt::format("  node_compute:\n    value: {}", compute));
    write_bytes(folder / "slow.yaml", text);
    const PlanInputs inputs = inputs_of(kSmallStudy + "stragglers: " + (folder / "slow.yaml").string() + "\n");
    return make_plan(inputs).schedule.input.stragglers->step_factor.value;
  };
  CHECK(factor_at(1) == Approx(1).margin(1e-9));
  const double half = factor_at(0.5);
  CHECK(half > 1.15);  // of a step whose host is as slow as before
  CHECK(half <= 2 + 1e-9);
}
