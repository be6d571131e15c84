// Scenarios of configs/faults on real processes: each strikes, and the run ends as the file says. Nightly all of them,
// in CI those of kInCi: each way to strike, to notice, to resume and to go on. unit_drill_proof and property_scenarios
// prove the grammar of the others, and the kinds that differ from one of these in a status or a number alone.
#include <catch2/catch.hpp>
#include <set>

#include "configs/files/find.hpp"
#include "planner/experiments/drill.hpp"
#include "tests/fixtures/nightly.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

// Beside them e2e_drill has `spare` and `kill-in-reload`, command_drill a kill, e2e_notice the maintenance.
const std::set<std::string> kInCi{"kill-in-save", "peer-copy",  "agent-lost",      "exit-in-collective",
                                  "hang",         "partition",  "flipped-bit",     "disk-full",
                                  "weight-found", "weight-bit", "replica-rejoins", "shrink-and-grow"};

}  // namespace

TEST_CASE("every kind of fault strikes, and the run recovers as its scenario says") {
  std::vector<DrillInput> inputs;
  for (const std::string& name : preset_names("faults")) {
    DrillInput input{read_scenario(name), {}};
    CHECK(input.scenario.name == name);
    if (input.scenario.run.empty() || (!nightly() && !kInCi.contains(name)))
      continue;  // empty: of simulated months alone
    input = read_drill_input(name);
    input.run.dataset.use_folder(licence_tokens(input.run.seq));
    inputs.push_back(std::move(input));
  }
  CHECK(inputs.size() >= kInCi.size());
  const DrillResult result = run_drill(inputs, scratch("kinds"), [](const std::string& line) { UNSCOPED_INFO(line); });
  REQUIRE(result.cases.size() == inputs.size());
  for (const DrillCase& c : result.cases) {
    INFO(c.name << (c.differences.empty() ? "" : ": " + c.differences.front()));
    CHECK(c.passed());
  }
}
