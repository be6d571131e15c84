// Published layouts lie in the spaces that the planner searches.
#include <catch2/catch.hpp>
#include <set>

#include "planner/search/search_evaluate.hpp"
#include "planner/validate/published_plans.hpp"
#include "sim/fit/row_program.hpp"
#include "tests/fixtures/fake_cost.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::vector<PublishedPlan>& plans() {
  static const std::vector<PublishedPlan> all = read_published_plans("configs/measurements/published_plans.yaml");
  return all;
}

const std::vector<StackSpec>& stacks() {
  static const std::vector<StackSpec> all = PublishedTimes::get().stacks();
  return all;
}

const PublishedPlan& plan(const std::string& run) {
  return *std::find_if(plans().begin(), plans().end(), [&](const PublishedPlan& p) { return p.run.id == run; });
}

}  // namespace

TEST_CASE("the space of every published plan has the published layout") {
  std::set<std::string> models, sources;
  const FakeCost cost;
  for (const PublishedPlan& each : plans()) {
    INFO(each.run.id << ", " << each.run.name);
    models.insert(each.run.model.name), sources.insert(each.run.source);
    const RunFiles files = files_of(each, stacks());
    const SpaceMember member = find_in_space(question_of(each, files, cost), files.run.layout);
    for (const AxisDifference& d : member.differences) UNSCOPED_INFO(d.axis << " " << d.found << ", not " << d.nearest);
    CHECK(member.inside());
    CHECK(each.run.step_s > 0);
  }
  CHECK(plans().size() >= 12);
  CHECK(models.size() >= 8);
  CHECK(sources.size() >= 8);
}

TEST_CASE("a plan's memory of a published run is what the run's own program takes, attention's scores included") {
  const FakeCost cost;
  for (const char* run : {"r00424", "g002", "r00379"}) {
    INFO(run);
    const RunFiles files = files_of(plan(run), stacks());
    const SearchProblem problem = question_of(plan(run), files, cost);
    CHECK(step_memory(problem, files.run.layout).live.peak() ==
          Approx(live_memory(peak_program(plan(run).run, files.stack), MemoryFacts{}).peak()));
  }
}

TEST_CASE("the terms of a step sum to it") {
  Simulated step;
  step.step_s = 10;
  step.totals = {{.action = Action::attention, .direction = Direction::forward, .busy_s = 3},
                 {.action = Action::attention, .direction = Direction::recompute, .busy_s = 2},
                 {.action = Action::share_tensor, .direction = Direction::recompute, .busy_s = 1, .exposed_s = 1},
                 {.action = Action::exchange_stages, .busy_s = 4, .exposed_s = 1.5}};
  const StepTerms terms = terms_of(step);
  CHECK(terms.recompute == 2);
  CHECK(terms.communication == 1);
  CHECK(terms.stages == 1.5);
  CHECK(terms.computation == 5.5);
}

TEST_CASE("no published layout is predicted below the bound of its search") {
  const PublishedComparison judged = judge_plan(plan("r00424"), PublishedTimes::get());
  REQUIRE(judged.member.inside());
  CHECK(judged.certificate.bound <= judged.published.step.step_s * (1 + 1e-9));
  CHECK(judged.certificate.violations == 0);
  CHECK(judged.ours.memory_bytes <= std::max(judged.memory_limit_bytes, judged.published.memory_bytes));
  const StepTerms terms = terms_of(judged.ours.step);
  CHECK(terms.computation > 0.5 * judged.ours.step.step_s);
  CHECK(terms.recompute >= 0);
}

TEST_CASE("a list of published plans names what it cannot take") {
  const TempDirectory folder;
  const auto reading = [&](const std::string& text) {
    const std::filesystem::path file = folder.path() / "plans.yaml";
    std::ofstream(file) << text;
    return usage_error([&] { read_published_plans(file); });
  };
  CHECK_THAT(reading("simulations: 8\nplans:\n  - {run: r0, good: so}\n"),
             Catch::Contains("plans.yaml:3") && Catch::Contains("found 'r0', needs a row_id"));
  CHECK_THAT(reading("simulations: 8\nplans:\n  - {run: r00424}\n"), Catch::Contains("good"));
  CHECK_THAT(reading("simulations: 8\nplans:\n  - {run: r00424, good: so, sear: {}}\n"), Catch::Contains("search"));
  CHECK_THAT(reading("plans: []\n"), Catch::Contains("simulations"));
  CHECK_THAT(reading("simulations: 8\nplans: []\n"), Catch::Contains("plans.yaml:2") && Catch::Contains("empty list"));
}

TEST_CASE("an entry's own number of simulations stands in place of the list's") {
  const TempDirectory folder;
  const std::filesystem::path file = folder.path() / "plans.yaml";
  std::ofstream(file) << "simulations: 8\nplans:\n  - {run: r00424, good: so, search: {simulations: 3}}\n"
                         "  - {run: r00428, good: so, search: {recompute: [none]}}\n";
  const std::vector<PublishedPlan> read = read_published_plans(file);
  CHECK(read[0].search.simulations == 3);
  CHECK(read[1].search.simulations == 8);
}
