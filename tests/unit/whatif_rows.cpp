// What-ifs: a row for each combination of values, planned, refused before the others or said not to fit.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/cli/whatif/whatif_report.hpp"
#include "tests/fixtures/small_plan.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("what-if plans each combination of values") {
  const WhatIf r =
      what_if(kSmallStudy, "s", {parse_assignment("search.expert_degrees=[1, 8]", false)},
              {parse_assignment("scale.compute_rate=0.5,1", true), parse_assignment("scale.mtbf=1,2", true)}, false);
  REQUIRE(r.rows.size() == 4);
  CHECK(r.rows[1].values == std::vector<std::string>{"0.5", "2"});
  CHECK(r.rows[0].plan->step.step_s > 1.1 * r.rows[2].plan->step.step_s);
  CHECK(r.rows[0].plan->step.step_s == r.rows[1].plan->step.step_s);
  CHECK(r.rows[0].plan->schedule.cadence.goodput.value < r.rows[1].plan->schedule.cadence.goodput.value);
  const Table table = what_if_table(r);
  CHECK(table.rows.size() == 4);
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(what_if_json(r)["rows"].size() == 4);
}

TEST_CASE("what-if says of each row how sure it is, on whose times it rests and what its MFU is") {
  const WhatIf r = what_if(kSmallStudy, "s", {parse_assignment("search.expert_degrees=[1]", false)},
                           {parse_assignment("cluster=hgx-h100,hgx-b200", true)}, false);
  const Table table = what_if_table(r);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(
        std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& c) { return c.name == name; }) -
        table.columns.begin());
  };
  REQUIRE(column("80 % interval") < table.columns.size());
  CHECK_THAT(table.rows[0][column("80 % interval")].text, Catch::Contains(" to "));
  CHECK(table.rows[0][column("extrapolated")].text == "0");  // products are published by shape
  CHECK(*table.rows[1][column("extrapolated")].number > 50);
  CHECK_THAT(table.note, Catch::Contains("over 989 TFLOP/s; row 2: ") && Catch::Contains("over 2250 TFLOP/s."));
  for (std::size_t i = 0; i < 2; ++i)
    CHECK_THAT(what_if_notes(r)[std::min(1 + i, what_if_notes(r).size() - 1)],  // behind what is set
               Catch::EndsWith(evidence_sentence(r.rows[i].plan->step.evidence) + "."));
  const nlohmann::json document = what_if_json(r);
  CHECK(document["notes"] == what_if_notes(r));
  CHECK(document["rows"][1]["evidence"] == evidence_json(r.rows[1].plan->step.evidence));
  CHECK(document["rows"][1]["extrapolated"] > 0.5);
  CHECK(document["rows"][1]["mfu_definition"]["peak_flops"] == r.rows[1].inputs.peak_flops);
}

TEST_CASE("what-if says which rows a profile's collectives have a say in") {
  const WhatIf r = what_if(kSmallStudy, "s", {parse_assignment("search.expert_degrees=[1]", false)},
                           {parse_assignment("profiles=[],[tests/data/h100-profile.json]", true)}, false);
  const std::vector<std::string> notes = what_if_notes(r), basis = plan_collectives(r.rows[1].inputs);
  REQUIRE_FALSE(basis.empty());
  CHECK(plan_collectives(r.rows[0].inputs).empty());
  for (const std::string& sentence : basis)
    CHECK(std::find(notes.begin(), notes.end(), "row 2: " + sentence) != notes.end());
}

TEST_CASE("what-if names the value that is refused, before it plans, and keeps the rows of the others") {
  int planned = 0;
  const auto count = [&](const std::string& part, auto...) { planned += part == "planning rows" ? 1 : 0; };
  CHECK_THROWS_WITH(
      what_if(kSmallStudy, "s", {}, {parse_assignment("failures=llama3,no-such-cluster", true)}, false, count),
      Catch::Contains("failures=no-such-cluster: ") && Catch::Contains("nothing was planned"));
  CHECK_THROWS_WITH(what_if(kSmallStudy, "s", {}, {parse_assignment("search.tie=0.01,7", true)}, false, count),
                    Catch::Contains("search.tie=7: "));
  CHECK(planned == 0);
  // That no expert degree divides shows only when layouts are enumerated.
  const WhatIf r = what_if(kSmallStudy, "s", {}, {parse_assignment("search.shard_sizes=auto,[7]", true)}, false, count);
  CHECK(planned > 0);
  CHECK(r.rows[0].plan.has_value());
  CHECK(r.rows[1].failure == Code::finding);
  CHECK_THAT(r.rows[1].misfit, Catch::Contains("divides"));
  CHECK(what_if_table(r).rows[1].back().text == "does not divide");
}

TEST_CASE("what-if refuses keys that a study does not have, before it plans") {
  const auto with = [](const std::string& sweep) {
    return what_if(kSmallStudy, "s", {}, {parse_assignment(sweep, true)}, false);
  };
  CHECK_THROWS_WITH(with("scale.network_bandwith=1"), Catch::Contains("did you mean 'scale.network_bandwidth' (s)?"));
  CHECK_THROWS_WITH(with("tokns=1T"), Catch::Contains("tokns: unknown key; did you mean 'tokens' (s)?"));
  CHECK_THROWS_WITH(with("gpus=16,17"), Catch::Contains("whole nodes"));
  CHECK_THROWS_WITH(parse_assignment("gpus", true), Catch::Contains("needs key=a,b,c"));
  CHECK_THROWS_WITH(parse_assignment("gpus=8,,16", true), Catch::Contains("empty value"));
  CHECK(parse_assignment("a=[1,2],3", true).values == std::vector<std::string>{"[1,2]", "3"});
}

TEST_CASE("a row that does not fit says so and the others are planned") {
  const std::string balanced = set_study_key(kSmallStudy, "routing", "balanced", "s");
  const WhatIf r = what_if(balanced, "s", {}, {parse_assignment("model=olmoe-1b-7b,dbrx", true)}, false);
  CHECK(r.rows[0].plan.has_value());
  CHECK_FALSE(r.rows[1].plan.has_value());
  CHECK(r.rows[1].misfit.find("nearest miss") != std::string::npos);
}
