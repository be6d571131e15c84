// What-ifs over keys of the cluster and the model, and the report that compares their rows.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "planner/cli/whatif/whatif_report.hpp"
#include "reports/render/render.hpp"
#include "reports/render/text_report.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: balanced\nfailures: llama3\nruns: 50\n"
    "search: {expert_degrees: [1], microbatch: [1], shard_sizes: [16], recompute: block}\n";

WhatIf swept(const std::vector<std::string>& sweeps, const std::vector<std::string>& settings = {}) {
  std::vector<KeyValuesOf> set, sweep;
  for (const std::string& one : settings) set.push_back(parse_assignment(one, false));
  for (const std::string& one : sweeps) sweep.push_back(parse_assignment(one, true));
  return what_if(kStudy, "s.yaml", set, sweep, false);
}

const Table* table_named(const Report& report, const std::string& title) {
  for (const Section& section : report.sections)
    for (const Item& item : section.items)
      if (const Table* table = std::get_if<Table>(&item); table && table->title == title) return table;
  return nullptr;
}

const Chart* chart_at(const Report& report, std::size_t number) {
  for (const Section& section : report.sections)
    for (const Item& item : section.items)
      if (const Chart* chart = std::get_if<Chart>(&item); chart && number-- == 0) return chart;
  return nullptr;
}

}  // namespace

TEST_CASE("swept values are numbers where all have the same unit") {
  const SweptAxis axis = swept_axis("cluster.nic.bandwidth", {"100Gb/s", "400 Gb/s"});
  CHECK(axis.numbers == std::vector<double>{100, 400});
  CHECK(axis.unit == "Gb/s");
  CHECK(swept_axis("scale.mtbf", {"1", "0.5"}).unit.empty());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"1T", "1B"}, {"1", "auto"}, {"[1, 2]", "[3]"}, {"inf", "1"}, {"dbrx", "olmoe"}})
    CHECK_FALSE(swept_axis("k", words).numeric());
}

TEST_CASE("a what-if of prices says the money of each row") {
  const std::string quote = "date: 2026-03-01, source: 'assumed: a test', spares: as_gpus";
  const WhatIf r = swept({"prices.gpu_hour=2,4"}, {"prices={currency: USD, gpu_hour: 1, " + quote + "}"});
  const nlohmann::json rows = what_if_json(r)["rows"];
  CHECK(rows[1]["money_p50"].get<double>() == Approx(2 * rows[0]["money_p50"].get<double>()));
  CHECK(rows[0]["gpu_hours_p50"] == rows[1]["gpu_hours_p50"]);
  CHECK(rows[0]["kwh_p50"].is_null());
  const std::string table = text_table(what_if_table(r), {.color = false});
  CHECK_THAT(table, Catch::Contains("money P50") && Catch::Contains(" USD"));
  CHECK_THAT(what_if_csv(r), Catch::Contains(",money_p50,money_p95,kwh_p50,"));
  CHECK_THAT(text_table(what_if_table(swept({"scale.mtbf=1"})), {.color = false}), !Catch::Contains("money"));
}

TEST_CASE("a what-if reaches keys of the cluster and of the model") {
  const WhatIf nic = swept({"cluster.nic.bandwidth=100Gb/s,400Gb/s"}),
               same = swept({}, {"scale.network_bandwidth=0.25"});
  CHECK(nic.rows[0].plan->step.step_s > nic.rows[1].plan->step.step_s);
  // A factor on the NICs is the same as NICs that slow, but for collectives timed by whole published times.
  CHECK(nic.rows[0].plan->step.step_s == Approx(same.rows[0].plan->step.step_s).epsilon(0.05));
  const WhatIf layers = swept({"model.n_layers=8,16"});
  CHECK(layers.rows[0].inputs.study.model.layers == 8);
  CHECK(layers.rows[1].plan->step.step_s > 1.5 * layers.rows[0].plan->step.step_s);
}

TEST_CASE("a cluster that is swept comes before keys that are set in it") {
  const WhatIf r = swept({"cluster=hgx-h100,hgx-h200"}, {"cluster.nic.bandwidth=100Gb/s"});
  for (const WhatIfRow& row : r.rows) CHECK(row.inputs.study.cluster.nic_Bps == 12.5e9);
  CHECK(what_if_notes(r).front() == "Set in every row: cluster.nic.bandwidth=100Gb/s.");
  CHECK(r.rows[1].inputs.study.cluster.name == "hgx-h200");
}

TEST_CASE("a list of maps is one value, with its commas") {
  CHECK(parse_assignment("cluster.degraded=[{node: 0, nic: 0.5}],[]", true).values ==
        std::vector<std::string>{"[{node: 0, nic: 0.5}]", "[]"});
  const WhatIf r = swept({"cluster.degraded=[{node: 0, nic: 0.1}],[]"});
  CHECK(r.rows[0].plan->step.step_s > r.rows[1].plan->step.step_s);
}

TEST_CASE("an unknown key names the nearest one and its file") {
  CHECK_THROWS_WITH(swept({"cluster.nic.bandwith=1Gb/s"}),
                    Catch::Contains("cluster.nic.bandwith: unknown key; did you mean 'cluster.nic.bandwidth' (") &&
                        Catch::Contains("hgx-h100.yaml)?"));
  CHECK_THROWS_WITH(swept({}, {"nic.bandwidth=1Gb/s"}), Catch::Contains("'cluster.nic.bandwidth' ("));
  CHECK_THROWS_WITH(swept({}, {"model=tests/data/models/dbrx_config.json", "model.n_lyers=3"}),
                    Catch::Contains("'model.n_layers' (tests/data/models/dbrx_config.json)?"));
  CHECK_THROWS_WITH(swept({}, {"maintenance.evry=30d"}), Catch::Contains("'maintenance.every' (s.yaml)?"));
  CHECK_THROWS_WITH(swept({}, {"zzz=1"}), Catch::Contains("zzz: unknown key of the study, its cluster and its model"));
}

TEST_CASE("one key of numbers is a line, each plan with its range") {
  const Report report = what_if_report(swept({"cluster.nic.bandwidth=400Gb/s,100Gb/s"}));
  check(report);
  const Chart* chart = chart_at(report, 1);
  REQUIRE(chart);
  CHECK(chart->kind == ChartKind::line);
  CHECK(chart->x == std::vector<double>{100, 400});
  CHECK(chart->label_axis == "cluster.nic.bandwidth [Gb/s]");
  const Series& days = chart->series[0];
  CHECK(days.values[0] > days.values[1]);
  for (std::size_t i = 0; i < 2; ++i) CHECK((days.low[i] <= days.values[i] && days.values[i] <= days.high[i]));
  CHECK_THAT(report.answer_range, Catch::Contains("Shortest with cluster.nic.bandwidth=400Gb/s; longest with "));
}

TEST_CASE("paired differences come first: in words, in the table, as a chart") {
  const WhatIf r = swept({"cluster.nic.bandwidth=100Gb/s,400Gb/s"});
  REQUIRE(r.base() == &r.rows[0]);
  CHECK_FALSE(r.rows[0].difference);
  const PairedDays& d = r.rows[1].difference.value();
  CHECK(d.p50 < 0);
  CHECK((d.p05 <= d.p50 && d.p50 <= d.p95));
  // Medians of differences and differences of medians are near each other; the paired interval is narrower than both.
  CHECK(d.p50 == Approx(r.rows[1].days() - r.rows[0].days()).epsilon(0.25));
  const CostRange& days = r.rows[1].plan->cost.days;
  CHECK(d.p95 - d.p05 < days.p95 - days.p05);
  CHECK_THAT(what_if_answer(r), Catch::StartsWith("tiny: cluster.nic.bandwidth=400Gb/s takes ") &&
                                    Catch::Contains("about as many days as 100Gb/s ("));
  const Table table = what_if_table(r);
  CHECK(table.columns[1].name == "difference");
  CHECK(table.rows[0][1].text == "-");
  CHECK(*table.rows[1][1].number == d.p50);
  const Report report = what_if_report(r);
  CHECK(report.answer == what_if_answer(r));
  const Chart* chart = chart_at(report, 0);
  REQUIRE(chart);
  CHECK(chart->title == "More or fewer days than with cluster.nic.bandwidth=100Gb/s");
  CHECK(chart->series[0].values == std::vector<double>{0, d.p50});
  CHECK(chart->series[0].high[1] == d.p95);
  CHECK(what_if_json(r)["rows"][1]["difference_days_p05"] == d.p05);
}

TEST_CASE("the same step on the same GPUs has no error of a ratio") {
  const WhatIf r = swept({"checkpoint.interval=10m,1h"});
  REQUIRE(r.rows[0].plan->step.step_s == r.rows[1].plan->step.step_s);
  for (const double factor : ratio_factors(r.rows[0].inputs, *r.rows[0].plan, r.rows[1].inputs, *r.rows[1].plan, 1))
    CHECK(factor == 1);
}

TEST_CASE("rows that differ in GPUs show the batch, and one that it does not divide says so and what would do") {
  const WhatIf r = swept({"gpus=16,24"}, {"search.shard_sizes=auto", "search.tensor_parallel_degree=1",
                                          "search.pipeline_parallel_degree=1"});
  const Table table = what_if_table(r);
  CHECK(table.columns[1].name == "batch");
  CHECK(*table.rows[0][1].number == 64);
  CHECK(table.rows[0][1].status == Status::none);
  CHECK(table.rows[1][1].text == "64, not among 24");
  CHECK(table.rows[1][1].status == Status::warn);
  REQUIRE(r.rows[0].plan);
  REQUIRE_FALSE(r.rows[1].plan);
  CHECK(table.rows[1].back().text == "does not divide");
  CHECK_THAT(r.rows[1].misfit, Catch::Contains("The batch of 64 sequences does not divide among 24 GPUs. It does among "
                                               "16 and 32.") &&
                                   Catch::Contains("The fewest GPUs on which a layout fits: "));
  CHECK_THAT(text_table(what_if_table(swept({"scale.mtbf=1,2"})), {.color = false}),
             !Catch::Contains("batch [sequences]"));
}

TEST_CASE("how much better another layout could be stands in table and document") {
  const WhatIf r = swept({"scale.mtbf=1"});
  const Certificate& c = r.rows[0].plan->search.certificate;
  CHECK(c.could_be_better() == Approx(1 - c.bound / c.incumbent));
  CHECK(what_if_json(r)["rows"][0]["could_be_better"] == c.could_be_better());
  CHECK_THAT(text_table(what_if_table(r), {.color = false}), Catch::Contains("could be better by [%]"));
}

TEST_CASE("two keys of numbers make a grid of days, and rank correlations") {
  const WhatIf r = swept({"cluster.nic.bandwidth=100Gb/s,400Gb/s", "scale.mtbf=4,0.01"});
  CHECK(*r.axes[0].rank_correlation < 0);
  CHECK(*r.axes[1].rank_correlation < 0);
  const Report report = what_if_report(r);
  check(report);
  const Table* grid = table_named(report, "Days over both keys");
  REQUIRE(grid);
  CHECK(grid->columns[0].name == "cluster.nic.bandwidth");
  CHECK(grid->columns[1].name == "0.01");  // ascending
  CHECK(grid->columns[2].name == "4");
  REQUIRE(grid->rows.size() == 2);
  CHECK(*grid->rows[0][1].number == Approx(r.at({0, 1}).days()));
  CHECK(*grid->rows[1][2].number == Approx(r.at({1, 0}).days()));
  CHECK(*grid->rows[0][1].heat == 1);
  CHECK(*grid->rows[1][2].heat == 0);
  const Chart* ranks = chart_at(report, 2);
  REQUIRE(ranks);
  CHECK(ranks->title == "Which key days go with");
  CHECK(ranks->series[0].values.size() == 2);
  CHECK_THAT(html_report(report), Catch::Contains("--heat:1"));
  CHECK(report_json(report_from_json(report_json(report), "r")) == report_json(report));
  CHECK(report.payload["rank_correlation_with_days"]["scale.mtbf"] == *r.axes[1].rank_correlation);
}

TEST_CASE("keys of words are bars, and rows without a plan say why") {
  const WhatIf r = swept({"model=olmoe-1b-7b,dbrx"});
  CHECK_FALSE(r.axes[0].numeric());
  CHECK_FALSE(r.axes[0].rank_correlation);
  const Report report = what_if_report(r);
  REQUIRE(chart_at(report, 0));
  CHECK(chart_at(report, 0)->kind == ChartKind::bar);
  CHECK(chart_at(report, 0)->labels == std::vector<std::string>{"olmoe-1b-7b"});
  CHECK_THAT(text_report(report), Catch::Contains("No plan: model=dbrx"));
}

TEST_CASE("a what-if is written as a page, a twin, Markdown and CSV") {
  const WhatIf r = swept({"search.shard_sizes=[8],[16]"});
  const TempDirectory folder;
  const auto files = write_what_if(r, folder / "out");
  REQUIRE(files.size() == 4);
  for (const auto& file : files) CHECK(std::filesystem::file_size(file) > 100);
  const std::string csv = what_if_csv(r);
  CHECK(read_bytes(folder / "out/whatif.csv") == csv);
  CHECK_THAT(csv, Catch::StartsWith("search.shard_sizes,fits,gpus,global_train_batch_size,difference_days_p50,"));
  CHECK_THAT(csv, Catch::Contains("\n[8],true,") && Catch::Contains("\n[16],true,"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
}
