// The report of a plan: short answers, a layout that a stranger reads, and words instead of ids.
#include "planner/cli/plan/plan_report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>

#include "configs/base/number.hpp"
#include "configs/base/text.hpp"
#include "reports/render/render.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: [olmoe-c4, olmoe-arxiv]\nfailures: llama3\nruns: 50\n"
    "search: {expert_degrees: [8], microbatch: [2], shard_sizes: [16], recompute: block}\n";

struct Planned {
  PlanInputs inputs = read_plan_inputs(study_from_text(kStudy, "study.yaml"), false);
  Plan plan = make_plan(inputs);
  PlanDetails details = plan_details(inputs, plan);
  nlohmann::json document = plan_json(inputs, plan);
  Report report = plan_report(inputs, plan, details, document);
};

/// One for all cases: nobody changes it.
const Planned& planned() {
  static const Planned all;
  return all;
}

template <class T>
const T& item(const std::string& section, const std::string& title) {
  for (const Section& each : planned().report.sections)
    for (const Item& one : each.items)
      if (const T* found = std::get_if<T>(&one); found && each.id == section && found->title == title) return *found;
  FAIL("no '" << title << "' in " << section);
  throw;
}

}  // namespace

TEST_CASE("the answer is one short sentence with its range") {
  const std::string answer = planned().report.answer;
  CHECK(std::regex_match(
      answer, std::regex(R"(olmoe-1b-7b on 16 hgx-h100 GPUs: 20B tokens in [0-9.]+ days \([0-9.]+ to [0-9.]+\)\.)")));
  CHECK(planned().document["answer"] == answer);
  CHECK_THAT(planned().report.answer_range,
             Catch::StartsWith("Range: the 5 % to the 95 % quantile of 50 simulated runs"));
}

TEST_CASE("page one says what is signed, and everything else is folded") {
  const Planned& p = planned();
  REQUIRE(p.report.sections[0].id == "summary");
  for (const Section& section : p.report.sections) CHECK(section.folded == (section.id != "summary"));
  const auto& facts = std::get<KeyValues>(p.report.sections[0].items.at(0)).entries;
  const std::vector<std::string> wanted{
      "days", "money", "GPUs", "MFU", "layout", "memory margin", "risk", "confidence", "simple alternative"};
  REQUIRE(facts.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(facts[i].first == wanted[i]);
  CHECK(*facts[0].second.number == p.plan.cost.days.p50);
  CHECK_THAT(facts[1].second.text, Catch::Contains("no prices are given"));
  CHECK_THAT(facts[4].second.text, Catch::StartsWith("data_parallel_shard_degree 16, expert_parallel_degree 8"));
  CHECK(*facts[5].second.number == Approx(p.plan.memory_limit_bytes - p.plan.memory.process.bytes));
  CHECK_THAT(facts[7].second.text, Catch::Contains("The nearest measured run is "));
  const Chart& done = item<Chart>("summary", "When the run is done");
  REQUIRE(done.x.size() == 50);  // one point for each run
  CHECK(std::is_sorted(done.x.begin(), done.x.end()));
  CHECK(done.series[0].values.back() == 100);
  CHECK(done.marks[1].x == p.plan.cost.days.p95);
  const Table& drivers = item<Table>("summary", "What drives the range");
  CHECK(drivers.rows.size() == 3);
  CHECK(*drivers.rows[0][1].number >= *drivers.rows[2][1].number);
}

TEST_CASE("the chosen row is the first of the layouts") {
  const Planned& p = planned();
  CHECK(candidate_table(p.inputs, p.plan, 6).rows.front().back().text == "chosen");
}

TEST_CASE("the layout is a table of axes, values and meanings") {
  const Table& table = item<Table>("layout", "The layout");
  REQUIRE(table.columns.size() == 3);
  std::map<std::string, std::string> value, meaning;
  for (const auto& row : table.rows) value[row[0].text] = row[1].text, meaning[row[0].text] = row[2].text;
  CHECK(value.at("replicas") == "1");
  CHECK(value.at("shard") == "16 GPUs");
  CHECK(value.at("experts") == "over 8 GPUs");
  CHECK_THAT(meaning.at("experts"), Catch::StartsWith("each computes 8 of a layer's 64 experts"));
  CHECK(value.at("microbatch") == "2 sequences");
  CHECK(value.at("recompute") == "block");
  CHECK(value.at("save every").find(counted(planned().plan.schedule.cadence.interval_steps, "step")) !=
        std::string::npos);
  CHECK(value.contains("spare nodes"));
  for (const char* axis : {"pipeline", "tensor", "context"}) CHECK_FALSE(value.contains(axis));  // of 1 here
}

TEST_CASE("memory adds up to the process, in words") {
  const Planned& p = planned();
  double GiB = 0;
  for (const Series& series : item<Chart>("memory", "At the peak").series) GiB += series.values.at(0);
  CHECK(GiB * kGiB_bytes == Approx(p.plan.memory.process.bytes));
  GiB = 0;
  for (const auto& row : item<Table>("memory", "What it is").rows) {
    GiB += *row[2].number;
    CHECK(row[0].text.find_first_of("._") == std::string::npos);
  }
  CHECK(GiB * kGiB_bytes == Approx(p.plan.memory.process.bytes));
}

TEST_CASE("the step stands on a time axis from its start to its end, in words") {
  const Chart& chart = item<Chart>("step", "The step of the critical rank");
  double first = 1e9, last = 0;
  for (const Series& series : chart.series)
    for (const Span& span : series.spans) first = std::min(first, span.start), last = std::max(last, span.end);
  CHECK(first == Approx(0).margin(1e-6));
  CHECK(last == Approx(planned().plan.step.step_s).epsilon(0.02));
  for (const std::string& label : chart.labels) CHECK(label.find('_') == std::string::npos);
  const Chart& layers = item<Chart>("step", "Layers 7 and 8, forward");
  for (const Series& series : layers.series)
    for (const Span& span : series.spans) CHECK_THAT(span.name, Catch::StartsWith("layer ") && Catch::Contains(": "));
}

TEST_CASE("what failures take is told in words and adds up to the goodput") {
  const Chart& chart = item<Chart>("goodput", "From wall time to goodput");
  for (const std::string& label : chart.labels) CHECK(label.find('_') == std::string::npos);
  const auto& runs =
      planned().plan.runs.distribution;  // the chart has means over runs, the goodput is that of each run
  CHECK(chart.series[0].values.back() == Approx(100 * runs.bucket_mean_s[0] / runs.mean_s).margin(0.01));
  CHECK(chart.series[0].values.back() == Approx(100 * runs.goodput).margin(2));
  const Table& intervals = item<Table>("goodput", "Other intervals");
  REQUIRE(intervals.rows.size() == planned().details.intervals.size());
  CHECK(*intervals.rows[0][2].number == 100 * planned().plan.schedule.cadence.goodput.value);
}

TEST_CASE("every input of the sensitivities has a bar and a row") {
  const std::size_t inputs = planned().details.sensitivities.rows.size();
  CHECK(inputs == 6);
  CHECK(item<Chart>("sensitivity", "Expected days").labels.size() == inputs);
  CHECK(item<Table>("sensitivity", "Would another layout be better?").rows.size() == inputs);
}

TEST_CASE("the document is made once: plan.json and the report's payload are the same") {
  const Planned& p = planned();
  const TempDirectory folder;
  write_plan(p.inputs, p.plan, p.details, p.document, folder / "plan");
  const auto plan = nlohmann::json::parse(read_bytes(folder / "plan/plan.json")),
             report = nlohmann::json::parse(read_bytes(folder / "plan/report.json"));
  CHECK(plan == p.document);
  CHECK(report["payload"] == plan);
  CHECK(report == report_json(report_from_json(report, "report.json")));
}

TEST_CASE("a plan that no job can be run with says which inputs to check") {
  CHECK(plan_doubts(planned().inputs, planned().plan).empty());
  Plan plan = planned().plan;
  plan.schedule.cadence.spares.value = 1628;
  CHECK_THAT(plan_doubts(planned().inputs, plan).at(0),
             Catch::Contains("1,628 spare nodes for") && Catch::Contains("repair_time"));
  plan.schedule.cadence.goodput.value = 0.3;
  CHECK_THAT(plan_doubts(planned().inputs, plan).at(1), Catch::Contains("Only 30 % of the time trains"));
  PlanInputs odd = planned().inputs;
  odd.study.gpus = 24;
  CHECK_THAT(plan_doubts(odd, planned().plan).at(0),
             Catch::StartsWith("The batch of 64 sequences does not divide among 24 GPUs. It does among 16 and 32."));
  odd.study.gpus = 128;  // more than sequences: groups share them
  CHECK(plan_doubts(odd, planned().plan).empty());
  PlanInputs given = planned().inputs;
  given.study.spare_nodes = 1628;
  CHECK(plan_doubts(given, plan).size() == 1);
}

TEST_CASE("the page starts at the plan's own row, also where others were planned") {
  const Planned& p = planned();
  const Table& own = item<Table>("explore", "Rows that were planned");
  REQUIRE(own.rows.size() == 1);
  CHECK(own.rows[0][own.explore->high].number == p.plan.cost.days.p95);
  PlanDetails details = p.details;
  details.explored = {{.cluster = "hgx-h100", .gpus = 8, .batch = 64, .misfit = "does not fit"},
                      explored_row(p.inputs, p.plan)};
  const Report report = plan_report(p.inputs, p.plan, details, p.document);
  const Table& two = std::get<Table>(report.sections[1].items[0]);
  CHECK(two.rows.size() == 2);
  CHECK(two.explore->start == 1);
  CHECK(two.rows[0].back().text == "does not fit");
}

TEST_CASE("hours that are paid include spare GPUs, which stand by as long as the run takes") {
  const Planned& p = planned();
  const ExploredRow row = explored_row(p.inputs, p.plan);
  const double spares = p.plan.schedule.cadence.spares.value * 8, gpus = 16;
  CHECK(row.paid_hours.p50 == Approx(row.days.p50 * 24 * (gpus + spares)));
}

TEST_CASE("rows around a study are whole nodes that divide the larger batch") {
  StudySpec study;
  study.gpus = 24, study.global_batch = 96, study.cluster.gpus_per_node = 8;
  const StudyOptions around = options_around(study);
  CHECK(around.gpus == std::vector<std::int64_t>{8, 16, 24, 32, 48});
  CHECK(around.batches == std::vector<std::int64_t>{48, 96, 192});
}
