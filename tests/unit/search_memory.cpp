// Which layouts a search calls too large: at the probability that is accepted.
#include <catch2/catch.hpp>

#include "planner/search/group_bounds.hpp"
#include "planner/search/layout_space.hpp"
#include "planner/search/search_evaluate.hpp"
#include "tests/fixtures/small_search.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("a layout fits where the probability of running out of memory is at most the accepted one") {
  Small s;
  const AllocatorMemory::Kind kind{{1e7, 1.1}, Evidence::published, {-0.1, 0.2}};
  const StackMemory memory(AllocatorMemory(kind, kind, true), {5e7, 2e7, 1e8, only(Evidence::published)});
  s.problem.memory = &memory;
  s.problem.memory_limit_bytes = 6e8;
  std::int64_t before = -1;
  double best_s = 1e300;
  for (const double risk : {0.01, 0.05, 0.2, 0.5}) {
    s.problem.space.memory_risk = risk;
    std::int64_t fit = 0;
    GroupBounds bounds(s.problem);
    for (const LayoutGroup& group : LayoutSpace(s.problem).groups())
      for (const Layout& layout : LayoutSpace(s.problem).members(group)) {
        const StepMemory m = step_memory(s.problem, layout);
        CHECK((m.needed() <= 6e8) == (m.process.exceeds(6e8) <= risk));
        CHECK(bounds.memory_bytes(group) <= m.needed());
        fit += m.needed() <= 6e8 ? 1 : 0;
      }
    CHECK(fit > before);
    CHECK(fit > 0);
    before = fit;
    const SearchResult r = search_layouts(s.problem);
    CHECK(r.certificate.incumbent == brute_force(s.problem));
    CHECK(r.certificate.incumbent <= best_s);
    best_s = r.certificate.incumbent;
  }
}

TEST_CASE("of a pipeline the stage whose process needs most counts, and a shortcut decides as all stages do") {
  Small s;
  s.problem.stack.layouts.schedules = {Schedule::one_f_one_b};
  s.problem.space.microbatches = {1};
  const AllocatorMemory::Kind kind{{1e7, 1.4}, Evidence::published, {-0.1, 0.2}};
  const StackMemory memory(AllocatorMemory(kind, kind, true), {5e7, 2e7, 1e8, only(Evidence::published)});
  s.problem.memory = &memory;
  GroupBounds bounds(s.problem);
  std::int64_t pipelines = 0;
  for (const LayoutGroup& group : LayoutSpace(s.problem).groups())
    for (const Layout& layout : LayoutSpace(s.problem).members(group)) {
      if (layout.pipeline == 1) continue;
      ++pipelines;
      s.problem.memory_limit_bytes = 1e18;
      const double needed = step_memory(s.problem, layout).needed();
      CHECK(bounds.memory_bytes(group) <= needed);
      CHECK(needed_bytes(s.problem, layout) == needed);
      for (const double share : {0.5, 0.9, 0.999, 1.0}) {
        s.problem.memory_limit_bytes = share * needed;
        CHECK((needed_bytes(s.problem, layout) > s.problem.memory_limit_bytes) == (share < 1));
      }
    }
  CHECK(pipelines > 10);
}

TEST_CASE("a large head's gradient is in a group's memory bound once, reduced once a step or each microbatch") {
  Small s;
  s.model.vocab = 131072;
  s.problem.space.microbatches = {1};
  s.problem.space.recompute = {recompute_from_string("block")};
  for (const char* stack : {"", "megatron-core", "torchtitan"}) {
    if (*stack) s.problem.stack.memory = read_stack(stack).memory;
    s.problem.stack.layouts.schedules = {Schedule::one_f_one_b};
    s.problem.stack.layouts.reduce_every_microbatch = {true, false};
    GroupBounds bounds(s.problem);
    for (const LayoutGroup& group : LayoutSpace(s.problem).groups())
      for (const Layout& layout : LayoutSpace(s.problem).members(group)) {
        INFO(stack << ": " << key_of(layout));
        CHECK(bounds.memory_bytes(group) <= step_memory(s.problem, layout).needed());
      }
  }
}
