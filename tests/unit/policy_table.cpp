// Ways to recover of a study: what is known, what is not and from where on it pays, and what the plan takes from it.
#include "planner/plan/policy_table.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "planner/cadence/recovery_formulas.hpp"
#include "planner/plan/plan.hpp"

using namespace wt;

namespace {

/// 64 nodes in four replicas of 16, a step of 10 s, a day of repair.
struct Example {
  PlanInputs inputs;
  Layout layout;
  RunSchedule schedule;
};

Example example(const std::string& more = "") {
  const std::string study =
      "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 512\nstack: torchtitan\ntokens: 20B\n"
      "max_seq_len: 2048\nglobal_train_batch_size: 1024\nfailures: rsc1\nruns: 60\n";
  Example e{{.study = study_from_text(study + more, "study.yaml")}, {}, {}};
  e.layout.replicate = 4, e.layout.shard = 128;
  e.inputs.failures = read_failures("rsc1");
  CheckpointTimes times;
  times.total_bytes = 1e12;
  times.blocking_s.value = 2, times.persist_s.value = 60, times.reload_s.value = 100;
  if (e.inputs.study.silent_errors.rate != "none")
    e.inputs.silent_errors = read_silent_errors(e.inputs.study.silent_errors.rate);
  e.schedule = make_schedule(e.inputs, e.layout, times, 10, e.inputs.failures);
  e.schedule.steps = 60 * 8640;
  return e;
}

PolicyTable table_of(const Example& e) { return compare_policies(e.inputs, e.layout, e.schedule); }

const PolicyRow& row(const PolicyTable& table, const std::string& policy) {
  return *std::ranges::find(table.rows, policy, &PolicyRow::policy);
}

}  // namespace

TEST_CASE("policies without an input are unknown, with the input and a break-even, and no number") {
  const PolicyTable table = table_of(example());
  CHECK(table.traces == 60);
  REQUIRE(table.rows.size() == 8);
  for (const char* policy :
       {"restart from local copies", "hot spares", "go on without a replica", "verified rollback"}) {
    INFO(policy);
    CHECK_FALSE(row(table, policy).outcome);
    CHECK_FALSE(row(table, policy).missing.empty());
    CHECK_THAT(row(table, policy).break_even, Catch::Contains("pays") || Catch::Contains("costs"));
    CHECK_THAT(table.choice, Catch::Contains(policy));
  }
  // rsc1: reschedule 5 min and restart 30 s are what a hot spare saves.
  CHECK_THAT(row(table, "hot spares").break_even, Catch::Contains("less than 5.50 min"));
  // Four replicas of two sequences: three of them take three for two, so that a third of the time away is lost.
  CHECK_THAT(row(table, "go on without a replica").break_even, Catch::Contains("stall + 0.33 x recover"));
  for (const char* policy : {"no failure", "wait for repair", "restart from storage", "shrink and grow"})
    CHECK(row(table, policy).outcome);
}

TEST_CASE("nothing beats no failure, spares beat waiting, and the difference from the reference is paired") {
  const PolicyTable table = table_of(example());
  const auto goodput = [&](const char* policy) { return row(table, policy).outcome->median_goodput(); };
  for (const PolicyRow& r : table.rows)
    if (r.outcome) CHECK(r.outcome->median_goodput() <= goodput("no failure"));
  CHECK(goodput("restart from storage") > goodput("wait for repair"));
  CHECK(goodput("shrink and grow") > goodput("wait for repair"));
  CHECK(table.rows[table.reference].difference->mean == 0);
  CHECK(row(table, "wait for repair").difference->high < 0);
  // Without spares the job runs while no node is away; each is so for a day in 1 + 1000 / 6.5 days.
  const double away = 1 / (1 + 1000 / 6.5);
  CHECK(goodput("wait for repair") == Approx(std::pow(1 - away, 64)).margin(0.05));
}

TEST_CASE("inputs that the study gives make policies known, and the best is taken") {
  const PolicyTable table =
      table_of(example("hot_spares: {activate: 20s, source: 'assumed: a test'}\n"
                       "replica_loss: {recover: 10m, stall: 30s, source: 'assumed: a test'}\n"
                       "silent_errors: {rate: llama3, verify: 1s, source: 'assumed: a test'}\n"
                       "checkpoint: {local: {every: 60s, survival: 0.9, source: 'assumed: a test'}}\n"));
  for (const PolicyRow& r : table.rows) {
    INFO(r.policy);
    CHECK(r.outcome);
    CHECK(r.missing.empty());
  }
  for (const char* policy : {"restart from local copies", "hot spares", "go on without a replica", "verified rollback"})
    CHECK_THAT(row(table, policy).how, Catch::Contains("(assumed: a test)"));  // the input that the study gives
  CHECK(row(table, "hot spares").difference->low > 0);
  CHECK(row(table, "verified rollback").difference->high < 0);
  const auto rank = [&](const PolicyRow& r) {
    return table.by_p10 ? r.outcome->p10_goodput() : r.outcome->median_goodput();
  };
  for (const PolicyRow& r : table.rows)
    if (r.policy != "no failure" && r.policy != "verified rollback")
      CHECK(rank(r) <= rank(table.rows[table.chosen]) * (1 + 1e-3));
}

TEST_CASE("spares: the fewest with 99.9 % of the best goodput, or the study's") {
  const PolicyTable table = table_of(example());
  const double load = 64 * 6.5e-3;  // nodes in repair, a day each
  const auto spares = static_cast<std::int64_t>(table.spares.value);
  CHECK(erlang_b(spares + 1, load) < 3e-3);  // 0.1 % is not lost to waiting, within what 60 traces tell
  CHECK(erlang_b(spares - 1, load) > 1e-3);
  CHECK(table.rows[table.reference].spares == spares);
  CHECK(table_of(example("spare_nodes: 1\n")).rows[table.reference].spares == 1);
}

TEST_CASE("what is compared again, on more traces, begins from the same closed form") {
  Example e = example();
  const PolicyTable once = table_of(e);
  e.schedule.cadence.spares = once.spares;  // as a plan does
  const PolicyTable again = table_of(e);
  CHECK(again.spares.value == once.spares.value);
  CHECK(again.spares.evidence.source == once.spares.evidence.source);
}

TEST_CASE("a policy that is no rival may vary as it likes") {
  // Without spares 64 nodes wait for a day each time: a goodput that varies by more than 10 % in two weeks, and is no
  // rival's.
  Example e = example();
  e.schedule.steps = 14 * 8640;
  const PolicyTable table = table_of(e);
  CHECK(row(table, "wait for repair").outcome->cv() > 0.1);
  CHECK(table.rows[table.reference].outcome->cv() < 0.1);
  CHECK_FALSE(table.by_p10);
}

TEST_CASE("a layout of one replica cannot go on without one, and says so") {
  Example e = example("replica_loss: {recover: 10m, stall: 30s, source: 'assumed: a test'}\n");
  e.layout.replicate = 1, e.layout.shard = 512;
  const PolicyTable table = table_of(e);
  CHECK_THAT(row(table, "go on without a replica").missing, Catch::Contains("1 replica on 64 nodes"));
  CHECK_THAT(row(table, "shrink and grow").missing, Catch::Contains("a step time on fewer nodes"));
}

TEST_CASE("a group of context ranks has whole sequences, at least one") {
  const Example e = example();
  CHECK(state_copies(e.layout) == 4);
  CHECK(sequences_of_group(e.inputs.study, e.layout) == 2);  // 1024 on 512 ranks
  Layout odd = e.layout;
  odd.replicate = 12;
  CHECK(sequences_of_group(e.inputs.study, odd) == 1);
}
