// Recovery policies of a study: what is known, what is not and from where on it pays, and what the plan takes from it.
#include "planner/plan/policy_table.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "planner/cadence/cadence_formulas.hpp"
#include "planner/cadence/recovery_formulas.hpp"
#include "planner/plan/plan.hpp"
#include "tests/fixtures/cadence_references.hpp"

using namespace wt;
using namespace wt::test;

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
  // A failure in 1000 / (6.5 x 64) days of the job; the spares idle so long, and 64 nodes gain 5.5 minutes.
  const double idle_h = static_cast<double>(table.rows[table.reference].spares) * 24 * 1000 / (6.5 * 64);
  CHECK_THAT(
      row(table, "hot spares").break_even,
      Catch::Contains(fmt::format("idle {:.3g} node-hours a failure, and gain {:.3g} at most", idle_h, 64 * 5.5 / 60)));
  // Four replicas of two sequences: three of them take three for two, so that a third of the time away is lost.
  CHECK_THAT(row(table, "go on without a replica").break_even, Catch::Contains("stall + 0.33 x recover"));
  for (const char* policy : {"no failure", "wait for repair", "restart from storage", "shrink and grow"})
    CHECK(row(table, policy).outcome);
  REQUIRE(table.surfaces.size() == 3);
  for (const BreakEvenSurface& surface : table.surfaces) CHECK_FALSE(row(table, surface.policy).outcome);
}

TEST_CASE("the surface of local copies: the study's rate in the middle, and each cell is O16's difference") {
  const Example e = example();
  const BreakEvenSurface surface = local_copies_surface(e.schedule.input);
  REQUIRE(surface.row.values.size() == 5);
  CHECK(surface.row.values[2].value == Approx(6.5));
  CHECK(surface.row.values[4].value == Approx(4 * 6.5));
  const CadencePlan cadence = choose_cadence(e.schedule.input);
  const RecoveryTimes& r = e.schedule.input.recovery;
  const TwoLevels one{.mtbf = e.schedule.input.mtbf_s.value,
                      .local_interval = cadence.interval_s.value,
                      .blocking = 2,
                      .downtime = r.detect_s.value + r.reschedule_s.value + r.restart_s.value,
                      .reload = r.reload_s.value + 60};
  for (std::size_t i = 0; i < surface.column.values.size(); ++i) {
    double best = -1;
    for (std::int64_t copies = 2; copies <= cadence.interval_steps; ++copies) {
      TwoLevels two = one;
      two.local_interval = one.local_interval / static_cast<double>(copies), two.locals_a_save = copies;
      two.local_reload = 2, two.survival = surface.column.values[i].value;
      best = std::max(best, two_level_goodput(two) - two_level_goodput(one));
    }
    CHECK(surface.cells[2][i].value == Approx(100 * best).epsilon(1e-9));
  }
  for (const auto& cells : surface.cells) CHECK(cells[0].value < cells[2].value);  // more survive
  // What is printed as the least survival is where the sign changes.
  const double q = least_survival_that_pays(e.schedule.input);
  CHECK((q < surface.column.values[0].value) == (surface.cells[2][0].value > 0));
}

TEST_CASE("the surface of hot spares: idle node-time is what failures gain, or never") {
  Example e = example();
  e.schedule.input.mtbf_s.value /= 8;  // else no standby of 64 nodes pays
  const BreakEvenSurface surface = hot_spares_surface(e.schedule.input);
  int never = 0;
  for (std::size_t i = 0; i < surface.cells.size(); ++i)
    for (std::size_t j = 0; j < surface.cells[i].size(); ++j) {
      const double failures_a_day = surface.row.values[i].value * 64 / 1000, standbys = surface.column.values[j].value;
      const double ready_s = surface.cells[i][j].value;
      never += std::isnan(ready_s);
      if (std::isnan(ready_s)) {
        CHECK(failures_a_day * 64 * 330 <= standbys * 86400);
        CHECK(surface.cells[i][j].text == "never");
      } else {
        CHECK(failures_a_day * 64 * (330 - ready_s) == Approx(standbys * 86400));
      }
    }
  CHECK((never > 0 && never < 20));
}

TEST_CASE("the surface of checks: at a cell's rate O8 comes to what unchecked errors lose") {
  const Example e = example();
  const BreakEvenSurface surface = verification_surface(e.schedule.input);
  const double interval_s = choose_cadence(e.schedule.input).interval_s.value;
  REQUIRE((surface.cells.size() == 3 && surface.cells[0].size() == 3));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const double found_s = surface.row.values[i].value, check_s = surface.column.values[j].value;
      const double mtbf_s = 1000 * 86400 / (64 * surface.cells[i][j].value);
      const double checked = verified_segment(interval_s, check_s, 0, 0, mtbf_s) / interval_s - 1;
      CHECK(checked == Approx((found_s + interval_s / 2) / mtbf_s).epsilon(0.1));  // the first order, of long checks
    }
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
  CHECK(table.surfaces.empty());
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

TEST_CASE("verified rollback competes where it is known how late silent errors are found without it") {
  const auto with = [](const std::string& found_after) {
    return table_of(
        example("silent_errors: {rate: llama3, verify: 1s, " + found_after + "source: 'assumed: a test'}\n"));
  };
  const PolicyTable unsaid = with(""), soon = with("found_after: 10m, "), late = with("found_after: 30d, ");
  const auto goodput = [](const PolicyTable& table, const char* policy) {
    return row(table, policy).outcome->median_goodput();
  };
  CHECK(unsaid.rows[unsaid.chosen].policy != kVerifiedRollback);
  CHECK_THAT(row(unsaid, kVerifiedRollback).how, Catch::Contains("pays where they find them after more than"));
  CHECK(soon.rows[soon.chosen].policy != kVerifiedRollback);
  CHECK(late.rows[late.chosen].policy == kVerifiedRollback);
  CHECK(goodput(late, kVerifiedRollback) == goodput(unsaid, kVerifiedRollback));
  CHECK(goodput(late, kNoFailure) == goodput(unsaid, kNoFailure));
  // Six errors in 110,592 node-days are one in 288 days of 64 nodes: of 318 days trained 288 are kept.
  CHECK(goodput(late, kRestartFromStorage) / goodput(unsaid, kRestartFromStorage) == Approx(288.0 / 318).epsilon(1e-3));
  CHECK(row(late, kRestartFromStorage).outcome->median_s() / row(unsaid, kRestartFromStorage).outcome->median_s() ==
        Approx(318.0 / 288).epsilon(1e-3));
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
