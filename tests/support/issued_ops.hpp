// The ops that the ranks of a run did, against those of its step program.
#pragma once
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/program/build/build.hpp"
#include "tests/support/trainer_fixture.hpp"

namespace wt::test {

/// Every rank did the ops of its program, in order.
inline void check_issued_ops(const RunSpec& run) {
  INFO(run.layout.name() << ", recompute " << to_string(run.layout.recompute));
  const ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  const auto timelines = timelines_of(trained(run));
  REQUIRE(static_cast<std::int64_t>(timelines.size()) == run.layout.world());
  for (std::size_t rank = 0; rank < timelines.size(); ++rank) {
    std::vector<std::string> expected, found;
    for (const OpInstance& op : unroll(set.programs[static_cast<std::size_t>(set.class_of_rank[rank])]))
      expected.push_back(op.id());
    for (const OpRecord& op : timelines[rank].ops) found.push_back(op.id);
    CHECK(timelines[rank].rank == static_cast<std::int64_t>(rank));
    CHECK(found == expected);
  }
}

}  // namespace wt::test
