// Whether a space has a layout: asked of every layout that it has, and of some that it has not.
#include <catch2/catch.hpp>

#include "planner/search/layout_space.hpp"
#include "planner/search/space_member.hpp"
#include "tests/fixtures/fake_cost.hpp"

using namespace wt;
using namespace wt::test;

namespace {

struct SmallSpace {
  ModelSpec model = small_model(4);
  FakeCost cost;
  SearchProblem problem{
      .model = model, .cluster = small_cluster(2), .cost = cost, .gpus = 8, .seq = 512, .global_batch = 16};
  SmallSpace() {
    problem.stack.layouts.tensor = true;
    problem.stack.layouts.schedules = {Schedule::one_f_one_b};
    problem.space.simulations = 1;
  }
};

std::string differences(const SpaceMember& member) {
  std::string out;
  for (const AxisDifference& d : member.differences) out += d.axis + " " + d.found + " not " + d.nearest + ";";
  return out;
}

}  // namespace

TEST_CASE("a space has each of its layouts") {
  const SmallSpace s;
  const std::vector<Layout> all = all_layouts(s.problem);
  REQUIRE(all.size() > 100);
  for (std::size_t i = 0; i < all.size(); i += 7) {
    const SpaceMember found = find_in_space(s.problem, all[i]);
    CHECK(found.inside());
    CHECK(differences(found).empty());
    CHECK(found.layouts == static_cast<std::int64_t>(all.size()));
  }
}

TEST_CASE("a layout that a space has not is told from its nearest by the axes in which they differ") {
  const SmallSpace s;
  Layout layout;
  layout.shard = 8, layout.microbatch = 2;
  CHECK(find_in_space(s.problem, layout).inside());
  layout.recompute = recompute_from_string("core");
  SpaceMember found = find_in_space(s.problem, layout);
  CHECK_FALSE(found.inside());
  CHECK(differences(found) == "recompute core not none;");
  layout.recompute = Recompute::block;
  layout.tensor = 2, layout.sequence_parallel = false, layout.shard = 4;  // the stack's tensor groups have it
  found = find_in_space(s.problem, layout);
  CHECK(differences(found) == "sequence_parallel false not true;");
}

TEST_CASE("tensor groups without sequence parallelism are a fact of the stack") {
  SmallSpace s;
  s.model.experts = s.model.top_k = 0;  // tensor groups of experts have it always
  s.problem.stack.layouts.sequence_parallel = {false};
  Layout layout;
  layout.tensor = 2, layout.shard = 4;
  CHECK(find_in_space(s.problem, layout).inside());
  layout.sequence_parallel = true;
  CHECK_FALSE(find_in_space(s.problem, layout).inside());
}

TEST_CASE("an empty space has nothing near") {
  SmallSpace s;
  s.problem.global_batch = 7;
  s.problem.space.tensor_degrees = {1}, s.problem.space.pipeline_degrees = {1};
  const SpaceMember found = find_in_space(s.problem, Layout{});
  CHECK_FALSE(found.inside());
  CHECK(found.layouts == 0);
}
