// Recovery policies in a report: known policies with their figures, unknown ones with UNKNOWN, the missing input and
// the break-evens, and no number; in a plan's own report, too.
#include "planner/cli/plan/policy_report.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/number.hpp"
#include "reports/render/text_report.hpp"
#include "tests/fixtures/small_plan.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Five traces of a known policy, and one that is not known, with a surface of one row.
PolicyTable two_policies() {
  PolicyTable table;
  table.traces = 5;
  const PolicyOutcome outcome{.goodputs = {0.9, 0.8, 0.85, 0.95, 0.7},
                              .wall_s = {kDay_s, 2 * kDay_s, 3 * kDay_s, 4 * kDay_s, 5 * kDay_s},
                              .finished = 5};
  table.rows = {{.policy = kRestartFromStorage,
                 .how = "down 5 min",
                 .spares = 3,
                 .outcome = outcome,
                 .difference = PairedDifference{0, 0, 0}},
                {.policy = kHotSpares, .missing = "hot_spares.activate", .break_even = "pays below 4 min"}};
  table.surfaces = {{.policy = kHotSpares,
                     .title = "How soon",
                     .unit = "time",
                     .row = {"failures", "per 1000 node-days", {{3.79, "3.79"}}},
                     .column = {"standbys", "nodes", {{1, "1"}, {8, "8"}}},
                     .cells = {{{175, "2.92 min"}, {NAN, "never"}}},
                     .note = "a note"}};
  table.choice = "restart from storage is best. Not known: hot spares.";
  return table;
}

}  // namespace

TEST_CASE("the table has the figures of a known policy, and UNKNOWN and nothing else of another") {
  const Table table = policies_table(two_policies());
  REQUIRE(table.rows.size() == 2);
  const std::vector<Cell>&known = table.rows[0], &unknown = table.rows[1];
  const std::vector<std::string> shown{
      "restart from storage", "3", "85.00", "74.00", "70.00", "95.00", "11.45", "3.00", "+0.00 (+0.00 to +0.00)"};
  REQUIRE(known.size() == table.columns.size());
  for (std::size_t i = 0; i < shown.size(); ++i) CHECK(known[i].text == shown[i]);
  REQUIRE(unknown.size() == table.columns.size());
  CHECK(unknown[0].text == "hot spares");
  CHECK(unknown[2].text == "UNKNOWN");
  CHECK(unknown[2].status == Status::warn);
  for (std::size_t i = 1; i < unknown.size(); ++i) {
    CHECK((i == 2 || unknown[i].text.empty()));
    CHECK_FALSE(unknown[i].number);
  }
}

TEST_CASE("what unknown policies need stands in a table of its own, and their surfaces follow") {
  const PolicyTable policies = two_policies();
  const Table needs = break_even_table(policies);
  REQUIRE(needs.rows.size() == 1);
  CHECK(needs.rows[0][0].text == "hot spares");
  CHECK(needs.rows[0][1].text == "hot_spares.activate");
  CHECK(needs.rows[0][2].text == "pays below 4 min");

  const Table surface = surface_table(policies.surfaces[0]);
  REQUIRE(surface.columns.size() == 3);
  CHECK(surface.columns[2].name == "standbys 8");
  REQUIRE(surface.rows.size() == 1);
  CHECK(surface.rows[0][0].number == 3.79);
  CHECK(surface.rows[0][1].text == "2.92 min");
  CHECK(surface.rows[0][1].number == 175.0);
  CHECK(surface.rows[0][2].text == "never");
  CHECK_FALSE(surface.rows[0][2].number);
}

TEST_CASE("JSON of an unknown policy has its missing input and no goodput; never is null") {
  const nlohmann::json document = policies_json(two_policies());
  const nlohmann::json &known = document["rows"][0], &unknown = document["rows"][1];
  CHECK(known["goodput"]["median"] == 0.85);
  CHECK_FALSE(known.contains("unknown"));
  CHECK(unknown["unknown"] == "hot_spares.activate");
  CHECK(unknown["break_even"] == "pays below 4 min");
  for (const char* key : {"goodput", "finish_s", "spares", "difference"}) CHECK_FALSE(unknown.contains(key));
  CHECK(document["surfaces"][0]["cells"] == nlohmann::json::parse("[[175.0, null]]"));
  CHECK(document["surfaces"][0]["column"]["values"] == nlohmann::json::parse("[1.0, 8.0]"));
}

TEST_CASE("a plan's report and document have the policies, the unknown ones marked") {
  const PlanInputs inputs = inputs_of(kSmallStudy);
  const Plan plan = make_plan(inputs);
  const Report report = report_of(inputs, plan);
  const auto section = std::ranges::find(report.sections, std::string("policies"), &Section::id);
  REQUIRE(section != report.sections.end());
  const auto table = [&](const std::string& title) {
    for (const Item& item : section->items)
      if (const Table* found = std::get_if<Table>(&item); found && found->title == title) return *found;
    FAIL("no table '" << title << "'");
    return Table{};
  };
  std::size_t unknown = 0;
  for (const auto& row : table("Recovery policies on the same traces").rows) unknown += row[2].text == "UNKNOWN";
  CHECK(unknown >= 3);  // this study gives none of their inputs
  CHECK(table("What the unknown ones need").rows.size() == unknown);
  CHECK(table("Goodput that local copies gain [points]").rows.size() == 5);
  const nlohmann::json document = plan_json(inputs, plan);
  std::size_t marked = 0;
  for (const auto& row : document["policies"]["rows"]) marked += row.contains("unknown");
  CHECK(marked == unknown);
  CHECK(document["policies"]["surfaces"].size() == 3);
  CHECK_THAT(text_report(report), Catch::Contains("hot_spares.activate"));
}

TEST_CASE("a plan lists other clusters' failure rates once each") {
  const Plan plan = make_plan(inputs_of(kSmallStudy));
  std::vector<std::string> names;
  for (const PresetRow& row : plan.presets) names.push_back(row.name);
  CHECK(std::ranges::count(names, std::string("rsc1")) == 1);
  CHECK(std::ranges::count(names, std::string("byterobust-moe")) == 1);
  // Of the same rate and recovery: the closed form does not tell them apart.
  CHECK(std::ranges::count(names, std::string("rsc1-lemons")) == 0);
  CHECK(std::ranges::count(names, std::string("llama3-laws")) == 0);
}
