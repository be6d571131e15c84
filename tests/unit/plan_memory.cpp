// What a plan says of a layout's memory, against a simulated step of it.
#include <catch2/catch.hpp>

#include "planner/search/search_evaluate.hpp"
#include "tests/fixtures/fake_cost.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("ranks of a tensor group with whole experts receive the rows of their share of the tokens") {
  const ModelSpec model = small_model(4);
  const FakeCost cost;
  SearchProblem problem{
      .model = model, .cluster = small_cluster(2), .cost = cost, .gpus = 8, .seq = 512, .global_batch = 16};
  problem.stack.layouts = StackLayouts::all();
  Layout layout;
  layout.tensor = 2, layout.shard = 4, layout.sequence_parallel = true, layout.expert = 4, layout.microbatch = 2;
  for (const bool whole : {false, true}) {
    layout.whole_experts = whole;
    CHECK(even_rows(problem, layout, 2) == 2 * 512 * 4 / (whole ? 2 : 1));
    CHECK(step_memory(problem, layout).live.peak() ==
          Approx(simulate_layout(problem, layout, true).critical->peak_bytes));  // with the rows that are routed
  }
}

TEST_CASE("attention without a fused kernel keeps its scores in a plan, too") {
  const ModelSpec model = small_model(4);
  const FakeCost cost;
  SearchProblem problem{
      .model = model, .cluster = small_cluster(1), .cost = cost, .gpus = 4, .seq = 512, .global_batch = 4};
  Layout layout;
  layout.shard = 4;
  const double fused = step_memory(problem, layout).live.peak();
  problem.stack.attention = AttentionKernels::unfused;
  // Scores and their softmax of each head, in 16 bits: the last layer's are not yet at the peak everywhere.
  const double scores = 8.0 * 512 * 512 * 2;
  const double kept = step_memory(problem, layout).live.peak() - fused;
  CHECK(kept >= 3 * scores);
  CHECK(kept <= 4 * 4 * scores);
}
