// What a run costs: closed forms without failures, ends of ranges, sums over buckets, break-even prices.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/money/cost.hpp"
#include "planner/plan/plan_cost.hpp"
#include "reports/render/text_report.hpp"

using namespace wt;
using Catch::Contains;

namespace {

PriceAmount amount(double low, double high) { return {low, high, "2026-03-01", {Evidence::assumed, "this test"}}; }
PriceAmount amount(double value) { return amount(value, value); }

PriceSpec prices(double gpu_hour) {
  PriceSpec p;
  p.currency = "USD";
  p.gpu_hour = amount(gpu_hour), p.spare_gpu_hour = amount(1);
  return p;
}

/// 100 steps of 36 s on two nodes of 8 GPUs and a spare one: an hour. Nothing fails, and a save takes nothing.
CostInput an_hour() {
  CostInput in;
  in.scenario.steps = 100, in.scenario.step_s = 36, in.scenario.interval_steps = 10;
  in.runs = 200;
  in.gpus = 16, in.nodes = 2, in.spare_gpus = 8, in.spare_nodes = 1;
  return in;
}

CostInput with_failures() {
  CostInput in = an_hour();
  in.scenario.failures.mean_s = 1800;
  in.scenario.blocking_s = 1, in.scenario.persist_s = 5;
  in.scenario.detect_s = 20, in.scenario.restart_s = 30, in.scenario.reload_s = 10;
  in.step = {{.computing = 0.7, .communicating = 0.2}, 34, 40};
  return in;
}

PowerSpec power() { return {amount(700), amount(400), amount(100), amount(2000)}; }

/// All parts, all in ranges.
PriceSpec all_prices() {
  PriceSpec p = prices(2);
  p.gpu_hour = amount(2, 3), p.spare_gpu_hour = amount(0.5, 1);
  p.storage_tb_month = amount(20, 30), p.egress_tb = amount(10, 90);
  p.power = power(), p.power->compute_W = amount(600, 700);
  p.pue = amount(1.1, 1.3), p.carbon_kg_kwh = amount(0.2, 0.4);
  return p;
}

void check_point(const CostRange& range, double value) {
  for (const double one : {range.p05, range.p50, range.p95, range.mean}) CHECK(one == Approx(value));
}

}  // namespace

TEST_CASE("without failures money is GPUs x hours x price, and spare nodes stand by as long") {
  CostInput in = an_hour();
  in.prices = prices(2.5);
  Cost cost = estimate_cost(in);
  check_point(cost.gpu_hours, 16);
  check_point(*cost.money, 16 * 2.5 + 8 * 1);
  CHECK(cost.spare_gpu_hours == Approx(8));
  in.prices->spares_as_gpus = true, in.prices->spare_gpu_hour = in.prices->gpu_hour;
  check_point(*estimate_cost(in).money, 24 * 2.5);
  in.spare_gpus = 0;
  check_point(*estimate_cost(in).money, 16 * 2.5);
}

TEST_CASE("without prices there are GPU-hours and no money, and all that is missing is named") {
  const Cost cost = estimate_cost(an_hour());
  check_point(cost.gpu_hours, 16);
  CHECK_FALSE(cost.money);
  CHECK_FALSE(cost.energy);
  CHECK_FALSE(cost.carbon);
  CHECK(cost.not_priced.size() == 6);
  CHECK(cost_sentence(cost) == "Cost: 16.0 GPU-hours (P50; P95 16.0); no prices are given.");
  const nlohmann::json document = cost_json(cost);
  CHECK(document["money"].is_null());
  CHECK(document["kwh"].is_null());
  CHECK(document["currency"].is_null());
  CHECK(document["buckets"]["productive"]["money"].is_null());
}

TEST_CASE("storage is charged by bytes and months, egress by bytes") {
  CostInput in = an_hour();
  in.prices = PriceSpec{};
  in.prices->currency = "USD";
  in.prices->storage_tb_month = amount(24), in.prices->egress_tb = amount(50);
  in.kept_bytes = 2e12, in.taken_bytes = 1e12;
  const Cost cost = estimate_cost(in);
  CHECK(cost.storage_money == Approx(2 * 24 / 720.0));
  CHECK(cost.egress_money == Approx(50));
  check_point(*cost.money, 2 * 24 / 720.0 + 50);
  CHECK_FALSE(break_even_gpu_hour(cost, 60));  // nothing depends on the price of a GPU-hour
}

TEST_CASE("energy is by state, with hosts, spare nodes and the building") {
  CostInput in = an_hour();
  in.step = {{.computing = 0.5, .communicating = 0.3}, 0, 0};
  in.prices = PriceSpec{};
  in.prices->power = power();
  const double servers = 16 * (0.5 * 700 + 0.3 * 400 + 0.2 * 100) + 8 * 100 + 3 * 2000;
  check_point(*estimate_cost(in).energy, servers / 1000);
  in.prices->pue = amount(1.25), in.prices->carbon_kg_kwh = amount(0.4);
  const Cost cost = estimate_cost(in);
  check_point(*cost.energy, 1.25 * servers / 1000);
  check_point(*cost.carbon, 0.4 * 1.25 * servers / 1000);
  CHECK_FALSE(cost.money);
  in.scenario.maintenance_every_s = 3600 / 2, in.scenario.maintenance_s = 900;  // idle meanwhile
  const Cost stopped = estimate_cost(in);
  const BucketCost& stop = stopped.buckets[static_cast<std::size_t>(Bucket::custom_events)];
  CHECK(stop.gpu_hours > 0);
  CHECK(stop.kWh == Approx(1.25 * stop.gpu_hours / 16 * (24 * 100 + 3 * 2000) / 1000));
}

TEST_CASE("the range of a price comes out at its ends and its middle") {
  CostInput in = an_hour();
  in.runs = 1000, in.spare_gpus = 0;
  in.prices = prices(2);
  in.prices->gpu_hour = amount(2, 3);
  const CostRange money = *estimate_cost(in).money;
  const double deviation = 0.5 / 1.2815515655;  // 80 % of a normal law lie within the range
  CHECK(money.p50 == Approx(16 * 2.5).epsilon(1e-3));
  CHECK(money.mean == Approx(16 * 2.5).epsilon(1e-3));
  CHECK(money.p05 == Approx(16 * (2.5 - 1.6448536 * deviation)).epsilon(1e-2));
  CHECK(money.p95 == Approx(16 * (2.5 + 1.6448536 * deviation)).epsilon(1e-2));
}

TEST_CASE("the interval of the step comes out in the hours") {
  CostInput in = an_hour();
  in.runs = 1000;
  in.step.low_s = 30, in.step.high_s = 54;
  const CostRange hours = estimate_cost(in).gpu_hours;
  CHECK(hours.p50 == Approx(16).epsilon(5e-3));
  CHECK(hours.p05 == Approx(16 * std::pow(30.0 / 36, 1.6448536 / 1.2815516)).epsilon(1e-2));
  CHECK(hours.p95 == Approx(16 * std::pow(54.0 / 36, 1.6448536 / 1.2815516)).epsilon(1e-2));
}

TEST_CASE("every bucket is priced: they sum to the means") {
  CostInput in = with_failures();
  in.prices = all_prices();
  in.kept_bytes = 2e12, in.taken_bytes = 1e12;
  const Cost cost = estimate_cost(in);
  BucketCost all;
  for (const BucketCost& bucket : cost.buckets)
    all.gpu_hours += bucket.gpu_hours, all.money += bucket.money, all.kWh += bucket.kWh;
  CHECK(all.gpu_hours == Approx(cost.gpu_hours.mean));
  CHECK(all.money + cost.storage_money + cost.egress_money == Approx(cost.money->mean));
  CHECK(all.kWh == Approx(cost.energy->mean));
  for (const Bucket bucket : {Bucket::productive, Bucket::wasted_progress, Bucket::infrastructure_recovery}) {
    CHECK(cost.buckets[static_cast<std::size_t>(bucket)].money > 0);
    CHECK(cost.buckets[static_cast<std::size_t>(bucket)].kWh > 0);
  }
  CHECK(cost.money->p05 < cost.money->p50);
  CHECK(cost.money->p50 < cost.money->p95);
  CHECK(cost.not_priced.empty());
}

TEST_CASE("with a point for a step the runs are those of the finish date") {
  CostInput in = with_failures();
  in.step.low_s = in.step.high_s = in.scenario.step_s;
  const RunDistribution runs = simulate_runs(in.scenario, in.runs, in.run);
  const Cost cost = estimate_cost(in);
  CHECK(cost.gpu_hours.p50 == Approx(16 * runs.p50_s / 3600));
  CHECK(cost.gpu_hours.p95 == Approx(16 * runs.p95_s / 3600));
  CHECK(cost.gpu_hours.mean == Approx(16 * runs.mean_s / 3600));
}

TEST_CASE("the same inputs cost the same, other seeds not") {
  CostInput in = with_failures();
  in.prices = all_prices();
  const double money = estimate_cost(in).money->p50;
  CHECK(estimate_cost(in).money->p50 == money);
  in.price_seed = 9;
  CHECK(estimate_cost(in).money->p50 != money);
}

TEST_CASE("at its break-even price a run costs as much as the other") {
  for (const bool as_gpus : {false, true}) {
    CostInput in = with_failures();
    in.prices = all_prices();
    in.prices->spares_as_gpus = as_gpus;
    if (as_gpus) in.prices->spare_gpu_hour = in.prices->gpu_hour;
    const Cost cost = estimate_cost(in);
    for (const double factor : {0.8, 1.0, 3.0}) {
      const double wanted = factor * cost.money->p50;
      const double price = break_even_gpu_hour(cost, wanted).value();
      const double scale = price / in.prices->gpu_hour->middle();
      CHECK((factor != 1 || scale == Approx(1)));
      CostInput other = in;
      other.prices->gpu_hour = amount(2 * scale, 3 * scale);
      if (as_gpus) other.prices->spare_gpu_hour = other.prices->gpu_hour;
      CHECK(estimate_cost(other).money->p50 == Approx(wanted));
    }
  }
  CostInput in = with_failures();
  in.prices = all_prices();
  in.taken_bytes = 1e15;
  CHECK_FALSE(break_even_gpu_hour(estimate_cost(in), 10));
}

TEST_CASE("where a step does not compute, it waits") {
  Simulated step;
  step.step_s = 10, step.low_s = 9, step.high_s = 12, step.exposed_s = 2;
  step.totals.resize(2);
  step.totals[0].busy_s = 7;
  step.totals[1].lane = Lane::all_gather, step.totals[1].busy_s = 5;
  const StepUse use = step_use(step);
  CHECK(use.computing == Approx(0.7));
  CHECK(use.communicating == Approx(0.3));
  CHECK(use.low_s == 9);
  CHECK(use.high_s == 12);
}

TEST_CASE("a plan costs what its simulated runs take at the study's prices, in report and document alike") {
  const std::string study =
      "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
      "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: balanced\nruns: 50\nspare_nodes: 2\n"
      "search: {expert_degrees: [1], microbatch: [1], shard_sizes: [16], recompute: block}\n"
      "prices: {currency: USD, date: 2026-03-01, source: 'assumed: a test', gpu_hour: 2, spare_gpu_hour: 1, "
      "storage_tb_month: 30, power: {compute: 700W, communicate: 400W, idle: 100W, host: 2kW}}\n";
  const PlanInputs inputs = read_plan_inputs(study_from_text(study, "s.yaml"), false);
  const Plan plan = make_plan(inputs);
  const Cost& cost = plan.cost;
  CHECK(plan.runs.scenario.spares == 2);
  CHECK(cost.spare_gpu_hours == Approx(cost.gpu_hours.mean));  // two nodes train, two stand by
  const double month = cost.gpu_hours.mean / 16 / 720;
  const double kept_TB = 2 * 12 * static_cast<double>(inputs.study.model.total_parameters()) / 1e12;
  CHECK(cost.storage_money == Approx(30 * kept_TB * month));
  CHECK(cost.money->mean == Approx(3 * cost.gpu_hours.mean + cost.storage_money));
  CHECK(cost.energy->mean > cost.gpu_hours.mean * (2 * 0.1 + 0.5));  // all idle, and four hosts
  CHECK(cost.energy->mean < cost.gpu_hours.mean * (0.7 + 0.1 + 0.5));
  const nlohmann::json document = plan_json(inputs, plan);
  CHECK(document["cost"]["sentence"] == cost_sentence(cost));
  CHECK(document["cost"]["money"]["p95"] == cost.money->p95);
  CHECK(document["cost"]["prices"][2]["key"] == "storage_tb_month");
  const std::string report = text_report(plan_report(inputs, plan, {}, document));
  CHECK_THAT(report, Contains(cost_sentence(cost)) && Contains("30") && Contains("USD a TB and month"));
}

TEST_CASE("people read money and energy in three digits") {
  CHECK(format_money(845, "USD") == "845 USD");
  CHECK(format_money(12345, "EUR") == "12.3k EUR");
  CHECK(format_money(999600, "USD") == "1.00M USD");
  CHECK(format_money(4.5678e9, "USD") == "4.57G USD");
  CHECK(format_money(0.5, "USD") == "0.50 USD");
  CHECK(format_energy(4.56e6) == "4.56 GWh");
  CHECK(format_energy(1234) == "1.23 MWh");
  CHECK(format_energy(12) == "12 kWh");
  CostInput in = an_hour();
  in.prices = prices(2.5);
  CHECK(cost_sentence(estimate_cost(in)) == "Cost: 48.0 USD (P50; P95 48.0 USD), 16.0 GPU-hours.");
  in.prices->power = power();
  CHECK_THAT(cost_sentence(estimate_cost(in)), Contains("48.0 USD") && Contains("kWh (P95 "));
  Report report{.title = "t", .answer = "a", .sections = {cost_section(estimate_cost(in))}};
  CHECK_THAT(text_report(report), Contains("Not priced: stored checkpoints (storage_tb_month)") &&
                                      Contains("assumed: this test") && Contains("2026-03-01"));
}
