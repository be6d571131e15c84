// A search small enough for brute force: 16 GPUs, four layers, routing that is not even.
#pragma once
#include <algorithm>

#include "planner/search/layout_space.hpp"
#include "planner/search/search_evaluate.hpp"
#include "tests/support/fake_cost.hpp"

namespace wt::test {

/// FSDP and HSDP with experts, as plans began.
inline StackSpec fsdp_stack() {
  StackSpec stack;
  stack.name = "fsdp";
  stack.dispatchers = {Dispatcher::alltoall};
  stack.exchange_overlap = stack.cuda_graphs = false;
  stack.layouts.recompute.clear();
  for (const char* policy : {"none", "attention", "experts", "attention+experts", "block"})
    stack.layouts.recompute.push_back(recompute_from_string(policy));
  return stack;
}

struct Small {
  ModelSpec model = small_model(4);
  FakeCost cost;
  SearchProblem problem{.model = model,
                        .cluster = small_cluster(4),
                        .cost = cost,
                        .gpus = 16,
                        .seq = 512,
                        .global_batch = 32,
                        .stack = fsdp_stack(),
                        .memory_limit_bytes = 1e18,
                        .peak_flops = 1e15};
  Small() {
    LoadScenario a{"a", {}, {}}, b{"b", {}, {}};
    for (int layer = 0; layer < 2; ++layer) {
      a.counts.emplace_back();
      b.counts.emplace_back();
      for (int e = 0; e < 16; ++e) {
        a.counts.back().push_back(1 + (e * 7 + layer * 5) % 11);
        b.counts.back().push_back(1 + (e * 3 + layer) % 5);
      }
    }
    problem.scenarios = {a, b};
    problem.space.simulations = 1000;
  }
};

inline double brute_force(const SearchProblem& p) {
  double best = 1e300;
  for (const Layout& layout : all_layouts(p))
    if (step_memory(p, layout).needed() <= p.memory_limit_bytes)
      best = std::min(best, simulate_layout(p, layout).step_s);
  return best;
}

}  // namespace wt::test
