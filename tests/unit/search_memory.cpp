// Which layouts a search calls too large: at the probability that is accepted.
#include <catch2/catch.hpp>

#include "planner/search/group_bounds.hpp"
#include "planner/search/layout_space.hpp"
#include "tests/support/small_search.hpp"

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
