// Every scenario of configs/faults on real processes: it strikes, and the run ends as the file says.
#include <catch2/catch.hpp>

#include "configs/files/find.hpp"
#include "planner/experiments/drill.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("every kind of fault strikes, and the run recovers as its scenario says") {
  std::vector<DrillInput> inputs;
  for (const std::string& name : preset_names("faults")) {
    DrillInput input{read_scenario(name), {}};
    CHECK(input.scenario.name == name);
    if (input.scenario.run.empty()) continue;  // of simulated months alone
    input = read_drill_input(name);
    input.run.dataset.use_folder(licence_tokens(input.run.seq));
    inputs.push_back(std::move(input));
  }
  const DrillResult result = run_drill(inputs, scratch("kinds"), [](const std::string& line) { UNSCOPED_INFO(line); });
  REQUIRE(result.cases.size() == inputs.size());
  for (const DrillCase& c : result.cases) {
    INFO(c.name << (c.differences.empty() ? "" : ": " + c.differences.front()));
    CHECK(c.passed());
  }
}
