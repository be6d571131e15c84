// The finish date of a plan: runs of the chosen recovery policy, on traces where more than rates is known.
#include "planner/plan/plan_runs.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "configs/base/number.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// 64 nodes, a step of 10 s, a save of 2 s every ten minutes that is whole a minute later.
struct Example {
  PlanInputs inputs = {};
  Layout layout = {};
  RunSchedule schedule = {};
  PolicyTable policies = {};
  PlanRuns runs = {};
};

struct Asked {
  std::string more = {}, checkpoint = {};  ///< of the study
  std::string failures = "rsc1";
  std::int64_t replicas = 1, days = 20;
  std::vector<Scenario> faults = {};
  double rate = 0;  ///< per 1000 node-days; 0 = the preset's
};

Example example(const Asked& asked) {
  const std::string study =
      "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 512\nstack: torchtitan\ntokens: 20B\n"
      "max_seq_len: 2048\nglobal_train_batch_size: 1024\nfailures: rsc1\nruns: 60\n";
  const std::string checkpoint = "checkpoint: {interval: 10m" + asked.checkpoint + "}\n";
  Example e{.inputs = {.study = study_from_text(study + checkpoint + asked.more, "study.yaml")}};
  e.layout.replicate = asked.replicas, e.layout.shard = 512 / asked.replicas;
  e.inputs.failures = read_failures(asked.failures);
  if (asked.rate > 0) e.inputs.failures.failures[0].per_1000_node_days.value = asked.rate;
  e.inputs.faults = asked.faults;
  if (const std::string& rate = e.inputs.study.silent_errors.rate; rate != "none")
    e.inputs.silent_errors = read_silent_errors(rate);
  CheckpointTimes times;
  times.total_bytes = 1e12;
  times.blocking_s.value = 2, times.persist_s.value = 60, times.reload_s.value = 100;
  e.schedule = make_schedule(e.inputs, e.layout, times, 10, e.inputs.failures);
  e.schedule.steps = asked.days * 8640;
  e.policies = compare_policies(e.inputs, e.layout, e.schedule);
  e.runs = simulate_plan(e.inputs, e.policies, e.schedule.steps);
  return e;
}

const PolicyRow& chosen(const Example& e) { return e.policies.rows[e.policies.chosen]; }

/// The runs that the comparison has, too, take as long to the last bit.
void check_agrees(const Example& e) {
  INFO(chosen(e).policy);
  CHECK(e.runs.on_traces);
  const std::vector<double>& compared = chosen(e).outcome->wall_s;
  REQUIRE(compared.size() <= e.runs.distribution.wall_s.size());
  CHECK(std::equal(compared.begin(), compared.end(), e.runs.distribution.wall_s.begin()));
}

constexpr double kNoFailures = 1e-9;

Scenario scenario(const TempDirectory& folder, const std::string& events) {
  write_bytes(folder / "faults.yaml", "name: given\nevents:\n" + events);
  return read_scenario((folder / "faults.yaml").string());
}

/// Wall time of the example without failures, which starts in 30 s: `steps` of 10 s, a save of 2 s after every 60, and
/// the last one is written for a minute.
double undisturbed_s(std::int64_t steps) { return as_double(steps) * 10 + as_double(ceil_div(steps, 60)) * 2 + 60; }

}  // namespace

TEST_CASE("where nodes fail at a rate the runs are drawn by running time, and come to what the comparison says") {
  const Example e = example({.days = 60});
  CHECK_FALSE(e.runs.on_traces);
  CHECK(chosen(e).policy == kRestartFromStorage);
  const RunDistribution& d = e.runs.distribution;
  CHECK(d.wall_s == simulate_runs(e.runs.scenario, 60, e.inputs.study.seed).wall_s);
  CHECK(d.p50_s ==
        Approx(chosen(e).outcome->median_s()).epsilon(5e-3));  // 25 failures that cost 20 minutes, in 60 days
  CHECK(e.policies.run.cadence.interval_steps == 60);
}

TEST_CASE("laws of a preset, spread times and other recovery policies: the runs meet the traces of the comparison") {
  for (const char* failures : {"rsc1-lemons", "llama3-laws", "olmo-hybrid"}) {
    INFO(failures);
    check_agrees(example({.failures = failures}));
  }
  const Example hot = example({.more = "hot_spares: {activate: 20s, source: 'assumed: a test'}\n"});
  CHECK(chosen(hot).policy == kHotSpares);
  CHECK_FALSE(hot.runs.on_traces);
  const Example hot_traced = example(
      {.more = "hot_spares: {activate: 20s, source: 'assumed: a test'}\n", .failures = "rsc1-lemons", .rate = 60});
  CHECK(chosen(hot_traced).policy == kHotSpares);
  check_agrees(hot_traced);
  const Example local =
      example({.checkpoint = ", local: {every: 5m, survival: 0.9, source: 'assumed: a test'}", .rate = 100});
  CHECK(chosen(local).policy == kLocalCopies);
  CHECK(local.policies.run.input.local.interval_steps == 30);
  check_agrees(local);
  const Example lost =
      example({.more = "replica_loss: {recover: 1m, stall: 10s, source: 'assumed: a test'}\n", .replicas = 4});
  CHECK(chosen(lost).policy == kWithoutReplica);
  CHECK(lost.policies.run.input.tolerance.replicas == 4);
  check_agrees(lost);
}

TEST_CASE("who shrinks has no spares, in the cadence and so in the money, too") {
  // A node that is away for a month, on every tenth day of each node: no spares last.
  const Example e = example({.more = "spare_nodes: 0\nrepair_time: 30d\n", .replicas = 64, .days = 30});
  CHECK(chosen(e).policy == "shrink and grow");
  CHECK(e.policies.run.cadence.spares.value == 0);
  check_agrees(e);
}

TEST_CASE("silent errors: charged where the study says how late they are found, else looked for before each save") {
  const auto with = [](const std::string& found_after) {
    return example(
        {.more = "silent_errors: {rate: llama3, verify: 1s, " + found_after + "source: 'assumed: a test'}\n"});
  };
  check_agrees(with("found_after: 10m, "));  // not worth looking for
  const Example late = with("found_after: 30d, ");
  CHECK(chosen(late).policy == kVerifiedRollback);
  check_agrees(late);
  const Example unsaid = with("");
  CHECK(chosen(unsaid).policy == kRestartFromStorage);
  CHECK(unsaid.runs.scenario.silent.verify_s == 1);
  CHECK(unsaid.runs.distribution.bucket_mean_s[static_cast<std::size_t>(Bucket::custom_events)] > 0);
}

TEST_CASE("a node lost for a day at a known time, no spares: the finish date is the closed form's") {
  const TempDirectory folder;
  const std::vector<Scenario> faults{
      scenario(folder, "  - {who: {domain: node, index: 5}, when: {time: 3h}, what: {kind: kill}, lasts: 24h}\n")};
  const Example e = example({.more = "spare_nodes: 0\n", .faults = faults, .rate = kNoFailures});
  CHECK(e.runs.on_traces);
  // 602 s from save to save. The one of 17 x 600 s of work is the last that is whole after three hours.
  const double saves = std::floor((3 * 3600 - 30 - 60) / 602.0);
  CHECK(saves == 17);
  const auto kept = static_cast<std::int64_t>(saves) * 60;
  const double expected_s = 27 * 3600 + 30 + 150 + undisturbed_s(e.schedule.steps - kept);  // restart and reload
  const RunDistribution& d = e.runs.distribution;
  for (const double quantile_s : {d.p50_s, d.p90_s, d.p95_s, chosen(e).outcome->median_s()})
    CHECK(quantile_s == Approx(expected_s).epsilon(1e-9));
  CHECK(d.failures == 1);
  const Example spared = example({.more = "spare_nodes: 1\n", .faults = faults, .rate = kNoFailures});
  // Five minutes each to detect the loss and to find the spare, in place of the day.
  CHECK(spared.runs.distribution.p95_s == Approx(expected_s - 24 * 3600 + 600).epsilon(1e-9));
}

TEST_CASE("a leaf switch that takes 32 nodes: the job waits for the repair, at any number of spares below") {
  const TempDirectory folder;
  const std::vector<Scenario> faults{
      scenario(folder, "  - {who: {domain: leaf, index: 1}, when: {time: 2d}, what: {kind: kill}, lasts: 10h}\n")};
  const Example e = example({.more = "spare_nodes: 31\n", .faults = faults, .rate = kNoFailures});
  const double saves = std::floor((2 * 86400 - 30 - 60) / 602.0);
  const auto kept = static_cast<std::int64_t>(saves) * 60;
  CHECK(e.runs.distribution.p50_s ==
        Approx(2 * 86400 + 10 * 3600 + 180 + undisturbed_s(e.schedule.steps - kept)).epsilon(1e-9));
  check_agrees(e);
}

TEST_CASE("the bad nodes of a preset: the finish is as far from that of its mean rate as the comparison says") {
  const Example bad = example({.failures = "rsc1-lemons", .days = 60}), alike = example({.days = 60});
  const auto median = [](const Example& e) { return e.runs.distribution.p50_s; };
  CHECK(bad.schedule.input.mtbf_s.value == Approx(alike.schedule.input.mtbf_s.value).epsilon(0.01));
  CHECK(median(bad) / median(alike) ==
        Approx(chosen(bad).outcome->median_s() / chosen(alike).outcome->median_s()).epsilon(5e-3));
  CHECK(median(bad) < median(alike));  // who is in repair does not fail
}
